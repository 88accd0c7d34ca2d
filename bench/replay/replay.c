// Replays an op; see replay.h.
#include "replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// Longer calls than LONG_US get at most SAMPLES_OF_LONG samples. The first call counts as a sample if it
// takes longer than FIRST_COUNTS_US, unless the device loads kernels in it.
static const double LONG_US = 1e6, FIRST_COUNTS_US = 5e3;
enum { SAMPLES_OF_LONG = 3 };

int replay_open(struct replay_setup *setup, const struct compute_device *device, int threads, bool tries_all,
                char reason[REASON_SIZE]) {
    *setup = (struct replay_setup){.device = device, .threads = threads, .tries_all = tries_all};
    if (device->open(threads, reason) != 0) return -1;
    for (int i = 0; i < MOST_LIBRARIES && device->library(i) != NULL; i++) {
        setup->libraries[i] = device->library(i);
        setup->is_open[i] = setup->libraries[i]->open(threads, setup->absent[i]) == 0;
        setup->library_count = i + 1;
    }
    return 0;
}

// ---- libraries ------------------------------------------------------------------------------------------

// Whether the library computes this, once it is loaded.
static bool supports(const struct library *library, enum op_kind kind, enum data_type type) {
    return (library->kinds >> kind & library->types >> type & 1) != 0;
}

static bool is_usable(const struct replay_setup *setup, int i, enum op_kind kind, enum data_type type) {
    const struct library *library = setup->libraries[i];
    return setup->is_open[i] && supports(library, kind, type) &&
           (library->is_fast == NULL || library->is_fast(type));
}

static bool any_computes(const struct replay_setup *setup, enum op_kind kind, enum data_type type) {
    for (int i = 0; i < setup->library_count; i++) {
        if (is_usable(setup, i, kind, type)) return true;
    }
    return false;
}

// The type to compute an op in: its own, or float32 for bfloat16, which represents all of its values. -1,
// with a reason: no library computes it.
static int choose_type(const struct replay_setup *setup, const struct op *op, enum data_type *type,
                       char reason[]) {
    *type = op->type;
    if (any_computes(setup, op->kind, *type)) return 0;
    *type = FLOAT32;
    if (op->type == BFLOAT16 && any_computes(setup, op->kind, *type)) return 0;
    static const char *const kinds[OP_KINDS] = {"matrix product", "convolution", "backward convolution"};
    int length = snprintf(reason, REASON_SIZE, "no library computes a %s in %s", kinds[op->kind],
                          data_type_names[op->type]);
    for (int i = 0; i < setup->library_count && length < REASON_SIZE; i++) {
        if (!setup->is_open[i] && supports(setup->libraries[i], op->kind, op->type))
            length += snprintf(reason + length, (size_t)(REASON_SIZE - length), "; %s", setup->absent[i]);
    }
    return -1;
}

static void add_note(struct replayed *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_note(struct replayed *to, const char *format, ...) {
    size_t length = strlen(to->note);
    if (length > 0 && length < NOTE_SIZE - 3) length += (size_t)snprintf(to->note + length, 3, "; ");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->note + length, NOTE_SIZE - length, format, arguments);
    va_end(arguments);
}

// ---- timing ---------------------------------------------------------------------------------------------

// The samples of one kind of calls.
struct samples {
    double *us;
    size_t count;
};

struct run {
    const struct compute_device *device;
    const struct op *op;
    const struct operands *operands, *loaded;
    const struct prepared_op *prepared;
    double began_us; // the whole op
    size_t least;    // samples of each kind
    int threads;
    double half_us; // for the samples of one kind beyond the least
};

static bool is_late(const struct run *run) {
    return run->op->limit_us > 0 && now_us() - run->began_us > run->op->limit_us;
}

static bool wants_more(const struct run *run, const struct samples *samples, double kind_began_us) {
    if (samples->count == 0) return true;
    if (is_late(run) || samples->count >= run->op->max_samples) return false;
    return samples->count < run->least || now_us() - kind_began_us < run->half_us;
}

// Times calls until `to` has enough samples. -1: the library failed.
static int sample(struct run *run, bool is_cold, struct samples *to) {
    double began = now_us();
    while (wants_more(run, to, began)) {
        double us;
        if (run->device->time(run->prepared, run->loaded, is_cold, &us) != 0) return -1;
        to->us[to->count++] = us;
        if (us > LONG_US && run->least > SAMPLES_OF_LONG) run->least = SAMPLES_OF_LONG;
    }
    return 0;
}

static void note_samples(const struct run *run, const struct samples *cold, const struct samples *warm,
                         struct replayed *to) {
    size_t fewest = cold->count < warm->count ? cold->count : warm->count;
    if (run->least < run->op->min_samples)
        add_note(to, "a call takes more than 1 s: %zu samples", run->least);
    if (fewest < run->least)
        add_note(to, "%zu sample%s instead of %zu%s", fewest, fewest == 1 ? "" : "s", run->least,
                 is_late(run) ? ": the budget was used up" : "");
}

static struct timed timed_of(const struct samples *samples) {
    double total = 0;
    for (size_t i = 0; i < samples->count; i++) total += samples->us[i];
    return (struct timed){total / (double)samples->count, summarise(samples->us, samples->count)};
}

// ---- a library ------------------------------------------------------------------------------------------

// A library that was tried for an op: the time of its first call, and the shorter time of the first two.
struct tried_library {
    const struct library *library; // NULL: none
    struct prepared_op prepared;
    double first_us, shorter_us;
};

static void end_tried(struct tried_library *tried) {
    if (tried->library != NULL) tried->prepared.end(tried->prepared.state);
    tried->library = NULL;
}

// The operands as the check reads them: results of transformed operands are rounded to integers, since all
// right results are integers.
static struct operands as_checked(const struct operands *operands, const struct prepared_op *prepared) {
    struct operands checked = *operands;
    checked.out.is_near = prepared->is_near != NULL && prepared->is_near(prepared->state);
    return checked;
}

// Makes a call with cold caches, and checks its whole result. -1, with a reason: it failed, or is wrong.
static int checked_call(const struct compute_device *device, const struct op *op,
                        const struct operands *operands, const struct operands *loaded, int threads,
                        const struct prepared_op *prepared, double *us, char reason[]) {
    snprintf(reason, REASON_SIZE, "the library failed");
    if (device->poison(loaded) != 0 || device->time(prepared, loaded, true, us) != 0 ||
        device->fetch(loaded, operands) != 0)
        return -1;
    const struct operands checked = as_checked(operands, prepared);
    return check_result(op, &checked, threads, reason);
}

// Makes and checks the first call. If libraries are compared and the call was short, times a second one,
// since the first one may include set-up work.
static int prove(const struct replay_setup *setup, const struct op *op, const struct operands *operands,
                 const struct operands *loaded, struct tried_library *tried, char reason[]) {
    const struct prepared_op *prepared = &tried->prepared;
    if (checked_call(setup->device, op, operands, loaded, setup->threads, prepared, &tried->first_us,
                     reason) != 0)
        return -1;
    tried->shorter_us = tried->first_us;
    if (!setup->tries_all || tried->first_us >= FIRST_COUNTS_US) return 0;
    double us;
    if (setup->device->time(prepared, loaded, false, &us) != 0) {
        snprintf(reason, REASON_SIZE, "the library failed");
        return -1;
    }
    tried->shorter_us = fmin(tried->first_us, us);
    return 0;
}

// The first library that computes the op, or the fastest of all; the note reports the others. -1, with a
// reason: none computes the right result.
static int choose_library(const struct replay_setup *setup, const struct op *op,
                          const struct operands *operands, const struct operands *loaded,
                          struct tried_library *best, struct replayed *to, char reason[]) {
    best->library = NULL;
    for (int i = 0; i < setup->library_count; i++) {
        const struct library *library = setup->libraries[i];
        struct tried_library tried = {.library = library};
        if (!is_usable(setup, i, op->kind, to->computed)) continue;
        if (best->library != NULL && !setup->tries_all) continue;
        int status = library->prepare(op, loaded, &tried.prepared, reason);
        if (status != 0) tried.library = NULL; // nothing to end
        if (status == 0) status = prove(setup, op, operands, loaded, &tried, reason);
        if (status == 0 && (best->library == NULL || tried.shorter_us < best->shorter_us)) {
            struct tried_library slower = *best;
            *best = tried;
            tried = slower;
        }
        if (status != 0)
            add_note(to, "%s: %s", library->name, reason);
        else if (tried.library != NULL)
            add_note(to, "faster than %s by a first trial: %.1f us against %.1f us", tried.library->name,
                     best->shorter_us, tried.shorter_us);
        end_tried(&tried);
    }
    return best->library != NULL ? 0 : -1;
}

// Times calls, and checks single elements of the last result. A long first call is also a cold sample, since
// its set-up work is a small part of it, unless kernels are loaded in it.
static int measure(struct run *run, double first_us, double *room, struct replayed *to, char reason[]) {
    struct samples cold = {room, 0}, warm = {room + run->op->max_samples, 0};
    if (first_us > FIRST_COUNTS_US && !run->device->loads_at_launch) cold.us[cold.count++] = first_us;
    if (first_us > LONG_US && run->least > SAMPLES_OF_LONG) run->least = SAMPLES_OF_LONG;
    if (run->device->poison(run->loaded) != 0 || sample(run, true, &cold) != 0 ||
        sample(run, false, &warm) != 0 || run->device->fetch(run->loaded, run->operands) != 0) {
        snprintf(reason, REASON_SIZE, "the library failed in a later call");
        return -1;
    }
    const struct operands checked = as_checked(run->operands, run->prepared);
    if (check_elements(run->op, &checked, reason) != 0) return -1;
    note_samples(run, &cold, &warm, to);
    to->cold = timed_of(&cold);
    to->warm = timed_of(&warm);
    return 0;
}

// Times a kernel that does nothing, in the place of the op's. A device may have none.
static void time_empty(const struct run *run, struct replayed *to) {
    enum { CALLS = 7 };
    double us[CALLS];
    size_t done = 0;
    char reason[REASON_SIZE] = "it failed";
    struct prepared_op empty;
    if (run->device->prepare_empty == NULL) return;
    if (run->device->prepare_empty(&empty, reason) == 0) {
        while (done < CALLS && run->device->time(&empty, run->loaded, false, &us[done]) == 0) done++;
        empty.end(empty.state);
    }
    if (done == CALLS)
        to->empty_us = summarise(us, done).median;
    else
        add_note(to, "no time of an empty kernel: %s", reason);
}

// ---- other algorithms of a library ----------------------------------------------------------------------

enum { TRIALS = 3, MOST_ALGORITHMS = 64, FEWEST_TURNS = 10 };

// The shortest of a few warm calls of an algorithm; infinite: it fails.
static double trial_of(const struct run *run, int algorithm) {
    double shortest = INFINITY, us;
    if (run->prepared->choose(run->prepared->state, algorithm) != 0) return INFINITY;
    for (int i = 0; i < TRIALS && !is_late(run); i++) {
        if (run->device->time(run->prepared, run->loaded, false, &us) != 0) return INFINITY;
        shortest = fmin(shortest, us);
    }
    return shortest;
}

// The fastest algorithm with a right result, by a few calls of each; 0 is the library's own choice.
static int fastest_of(const struct run *run, struct replayed *to) {
    double trials[MOST_ALGORITHMS], us;
    int count = run->prepared->algorithms < MOST_ALGORITHMS ? run->prepared->algorithms : MOST_ALGORITHMS;
    for (int i = 0; i < count; i++) {
        trials[i] = trial_of(run, i);
        to->algorithms += isfinite(trials[i]) != 0;
    }
    if (is_late(run) && to->algorithms < to->offered)
        add_note(to, "%d of %d algorithms timed: the budget was used up", to->algorithms, to->offered);
    while (true) {
        char reason[REASON_SIZE];
        int best = 0;
        for (int i = 1; i < count; i++) {
            if (trials[i] < trials[best]) best = i;
        }
        if (best == 0) return 0;
        if (run->prepared->choose(run->prepared->state, best) == 0 &&
            checked_call(run->device, run->op, run->operands, run->loaded, run->threads, run->prepared, &us,
                         reason) == 0)
            return best;
        add_note(to, "algorithm %d: %s", best, reason);
        trials[best] = INFINITY;
    }
}

// The speed-up of the fastest algorithm over the library's choice: both are timed in turns, since a GPU's
// clock drifts.
static void compare_algorithms(const struct run *run, struct replayed *to) {
    size_t turns = 2 * run->op->min_samples > FEWEST_TURNS ? 2 * run->op->min_samples : FEWEST_TURNS;
    double *ratios = malloc(turns * sizeof *ratios);
    const struct prepared_op *prepared = run->prepared;
    size_t done = 0;
    to->offered = prepared->algorithms;
    to->fastest = fastest_of(run, to);
    to->gain = (struct summary){.median = 1, .low = 1, .high = 1};
    for (; ratios != NULL && to->fastest > 0 && done < turns && !is_late(run); done++) {
        double first, other;
        if (prepared->choose(prepared->state, 0) != 0 ||
            run->device->time(prepared, run->loaded, false, &first) != 0 ||
            prepared->choose(prepared->state, to->fastest) != 0 ||
            run->device->time(prepared, run->loaded, false, &other) != 0)
            break;
        ratios[done] = other > 0 ? first / other : 1;
    }
    if (done > 0) to->gain = summarise(ratios, done);
    to->is_compared = done > 0 || (to->fastest == 0 && to->algorithms > 1);
    free(ratios);
}

// ---- an op ----------------------------------------------------------------------------------------------

static int time_calls(const struct replay_setup *setup, const struct op *op, const struct operands *operands,
                      const struct operands *loaded, const struct tried_library *by, double began_us,
                      struct replayed *to, char reason[]) {
    struct run run = {.device = setup->device,
                      .op = op,
                      .operands = operands,
                      .loaded = loaded,
                      .prepared = &by->prepared,
                      .threads = setup->threads,
                      .began_us = began_us,
                      .least = op->min_samples,
                      .half_us = op->sampling_us / 2};
    double *room = malloc(2 * op->max_samples * sizeof *room);
    if (room == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    int status = measure(&run, by->first_us, room, to, reason);
    free(room);
    if (status == 0) time_empty(&run, to);
    bool is_first_look = op->max_samples < op->min_samples;
    if (status == 0 && by->prepared.algorithms > 1 && !is_first_look) compare_algorithms(&run, to);
    return status;
}

int replay_op(const struct replay_setup *setup, const struct op *op, struct replayed *to,
              char reason[REASON_SIZE]) {
    double began = now_us();
    struct operands operands, loaded;
    struct tried_library best;
    *to = (struct replayed){.library = NULL};
    if (choose_type(setup, op, &to->computed, reason) != 0 ||
        operands_make(op, to->computed, setup->threads, &operands, reason) != 0 ||
        setup->device->load(&operands, &loaded, reason) != 0)
        return -1;
    if (to->computed != op->type)
        add_note(to, "computed in %s, since there is no fast %s here", data_type_names[to->computed],
                 data_type_names[op->type]);
    if (op->threads > 0 && op->threads != setup->threads && setup->device == &device_host)
        add_note(to, "saved with %d thread%s a call, and timed with %d", op->threads,
                 op->threads == 1 ? "" : "s", setup->threads);
    if (choose_library(setup, op, &operands, &loaded, &best, to, reason) != 0) return -1;
    to->library = best.library->name;
    snprintf(to->kernel, sizeof to->kernel, "%s", best.prepared.kernel);
    if (best.prepared.note[0] != '\0') add_note(to, "%s", best.prepared.note);
    int status = time_calls(setup, op, &operands, &loaded, &best, began, to, reason);
    end_tried(&best);
    return status;
}
