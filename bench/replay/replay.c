// Replays an op; see replay.h.
#include "replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// A call above this gets no more samples than that; and above this the first one is among them.
static const double LONG_US = 1e6, FIRST_COUNTS_US = 5e3;
enum { SAMPLES_OF_LONG = 3 };

int host_open(struct host *host, const struct machine *machine, int threads, bool tries_all,
              char reason[REASON_SIZE]) {
    *host = (struct host){.machine = machine, .threads = threads, .tries_all = tries_all};
    if (machine->open(threads, reason) != 0) return -1;
    for (int i = 0; i < MOST_LIBRARIES && machine->library(i) != NULL; i++) {
        host->libraries[i] = machine->library(i);
        host->is_open[i] = host->libraries[i]->open(threads, host->absent[i]) == 0;
        host->library_count = i + 1;
    }
    return 0;
}

// ---- what computes --------------------------------------------------------------------------------------

// Whether it would, were it there.
static bool knows(const struct library *library, enum op_kind kind, enum data_type type) {
    return (library->kinds >> kind & library->types >> type & 1) != 0;
}

static bool can(const struct host *host, int i, enum op_kind kind, enum data_type type) {
    const struct library *library = host->libraries[i];
    return host->is_open[i] && knows(library, kind, type) &&
           (library->is_fast == NULL || library->is_fast(type));
}

static bool computes(const struct host *host, enum op_kind kind, enum data_type type) {
    for (int i = 0; i < host->library_count; i++) {
        if (can(host, i, kind, type)) return true;
    }
    return false;
}

// The type to compute an op in: its own, or float32 for bfloat16, which holds all of its values. -1, with a
// reason: nothing here computes it.
static int choose_type(const struct host *host, const struct op *op, enum data_type *type, char reason[]) {
    *type = op->type;
    if (computes(host, op->kind, *type)) return 0;
    *type = FLOAT32;
    if (op->type == BFLOAT16 && computes(host, op->kind, *type)) return 0;
    const char *kind = op->kind == OP_GEMM ? "matrix product" : "convolution";
    int length =
        snprintf(reason, REASON_SIZE, "nothing here computes a %s in %s", kind, data_type_names[op->type]);
    for (int i = 0; i < host->library_count && length < REASON_SIZE; i++) {
        if (!host->is_open[i] && knows(host->libraries[i], op->kind, op->type))
            length += snprintf(reason + length, (size_t)(REASON_SIZE - length), "; %s", host->absent[i]);
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
    const struct machine *machine;
    const struct op *op;
    const struct operands *operands, *placed;
    const struct call *call;
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

// Times calls until there are enough, those that `to` has included. -1: the library failed.
static int sample(struct run *run, bool is_cold, struct samples *to) {
    double began = now_us();
    while (wants_more(run, to, began)) {
        double us;
        if (run->machine->time(run->call, run->placed, is_cold, &us) != 0) return -1;
        to->us[to->count++] = us;
        if (us > LONG_US && run->least > SAMPLES_OF_LONG) run->least = SAMPLES_OF_LONG;
    }
    return 0;
}

static void tell_samples(const struct run *run, const struct samples *cold, const struct samples *warm,
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

// A library that may compute an op, and how long its first call took and the shorter of its first two.
struct candidate {
    const struct library *library; // NULL: none
    struct call call;
    double first_us, shorter_us;
};

static void end_candidate(struct candidate *candidate) {
    if (candidate->library != NULL) candidate->call.end(candidate->call.state);
    candidate->library = NULL;
}

// The operands as the check reads them: what is computed from transformed numbers is rounded to integers, as
// the right results are.
static struct operands as_checked(const struct operands *operands, const struct call *call) {
    struct operands checked = *operands;
    checked.out.is_near = call->is_near != NULL && call->is_near(call->state);
    return checked;
}

// Makes a call with cold caches, and checks its whole result. -1, with a reason: it is wrong.
static int checked_call(const struct machine *machine, const struct op *op, const struct operands *operands,
                        const struct operands *placed, int threads, const struct call *call, double *us,
                        char reason[]) {
    snprintf(reason, REASON_SIZE, "the library failed");
    if (machine->forget(placed) != 0 || machine->time(call, placed, true, us) != 0 ||
        machine->fetch(placed, operands) != 0)
        return -1;
    const struct operands checked = as_checked(operands, call);
    return check_result(op, &checked, threads, reason);
}

// The first call; and another one, where it is wanted and the first may have done much besides.
static int prove(const struct host *host, const struct op *op, const struct operands *operands,
                 const struct operands *placed, struct candidate *candidate, char reason[]) {
    const struct call *call = &candidate->call;
    if (checked_call(host->machine, op, operands, placed, host->threads, call, &candidate->first_us,
                     reason) != 0)
        return -1;
    candidate->shorter_us = candidate->first_us;
    if (!host->tries_all || candidate->first_us >= FIRST_COUNTS_US) return 0;
    double us;
    if (host->machine->time(call, placed, false, &us) != 0) {
        snprintf(reason, REASON_SIZE, "the library failed");
        return -1;
    }
    candidate->shorter_us = fmin(candidate->first_us, us);
    return 0;
}

// The first library that computes the op, or the fastest of all; the note says what the others did. -1, with
// a reason: none gives the right result.
static int choose_library(const struct host *host, const struct op *op, const struct operands *operands,
                          const struct operands *placed, struct candidate *best, struct replayed *to,
                          char reason[]) {
    best->library = NULL;
    for (int i = 0; i < host->library_count; i++) {
        const struct library *library = host->libraries[i];
        struct candidate candidate = {.library = library};
        if (!can(host, i, op->kind, to->computed)) continue;
        if (best->library != NULL && !host->tries_all) continue;
        int status = library->prepare(op, placed, &candidate.call, reason);
        if (status != 0) candidate.library = NULL; // nothing to end
        if (status == 0) status = prove(host, op, operands, placed, &candidate, reason);
        if (status == 0 && (best->library == NULL || candidate.shorter_us < best->shorter_us)) {
            struct candidate slower = *best;
            *best = candidate;
            candidate = slower;
        }
        if (status != 0)
            add_note(to, "%s: %s", library->name, reason);
        else if (candidate.library != NULL)
            add_note(to, "faster than %s by a first trial: %.1f us against %.1f us", candidate.library->name,
                     best->shorter_us, candidate.shorter_us);
        end_candidate(&candidate);
    }
    return best->library != NULL ? 0 : -1;
}

// Times, and checks some of what the timed calls left. A long first call is a cold sample, too: what it did
// besides is little of it.
static int measure(struct run *run, double first_us, double *room, struct replayed *to, char reason[]) {
    struct samples cold = {room, 0}, warm = {room + run->op->max_samples, 0};
    if (first_us > FIRST_COUNTS_US) cold.us[cold.count++] = first_us;
    if (first_us > LONG_US && run->least > SAMPLES_OF_LONG) run->least = SAMPLES_OF_LONG;
    if (run->machine->forget(run->placed) != 0 || sample(run, true, &cold) != 0 ||
        sample(run, false, &warm) != 0 || run->machine->fetch(run->placed, run->operands) != 0) {
        snprintf(reason, REASON_SIZE, "the library failed in a later call");
        return -1;
    }
    const struct operands checked = as_checked(run->operands, run->call);
    if (check_elements(run->op, &checked, reason) != 0) return -1;
    tell_samples(run, &cold, &warm, to);
    to->cold = timed_of(&cold);
    to->warm = timed_of(&warm);
    return 0;
}

// ---- other algorithms of a library ----------------------------------------------------------------------

enum { TRIALS = 3, MOST_ALGORITHMS = 64, FEWEST_TURNS = 10 };

// The shortest of a few warm calls of an algorithm; infinite: it fails.
static double trial_of(const struct run *run, int algorithm) {
    double shortest = INFINITY, us;
    if (run->call->choose(run->call->state, algorithm) != 0) return INFINITY;
    for (int i = 0; i < TRIALS && !is_late(run); i++) {
        if (run->machine->time(run->call, run->placed, false, &us) != 0) return INFINITY;
        shortest = fmin(shortest, us);
    }
    return shortest;
}

// The fastest algorithm with a right result, by a few calls of each; 0 is the library's own choice.
static int fastest_of(const struct run *run, struct replayed *to) {
    double trials[MOST_ALGORITHMS], us;
    int count = run->call->algorithms < MOST_ALGORITHMS ? run->call->algorithms : MOST_ALGORITHMS;
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
        if (run->call->choose(run->call->state, best) == 0 &&
            checked_call(run->machine, run->op, run->operands, run->placed, run->threads, run->call, &us,
                         reason) == 0)
            return best;
        add_note(to, "algorithm %d: %s", best, reason);
        trials[best] = INFINITY;
    }
}

// How many times as fast as the library's choice the fastest is: both in turns, since a GPU's clock drifts.
static void compare_algorithms(const struct run *run, struct replayed *to) {
    size_t turns = 2 * run->op->min_samples > FEWEST_TURNS ? 2 * run->op->min_samples : FEWEST_TURNS;
    double *ratios = malloc(turns * sizeof *ratios);
    const struct call *call = run->call;
    size_t done = 0;
    to->offered = call->algorithms;
    to->fastest = fastest_of(run, to);
    to->gain = (struct summary){.median = 1, .low = 1, .high = 1};
    for (; ratios != NULL && to->fastest > 0 && done < turns && !is_late(run); done++) {
        double first, other;
        if (call->choose(call->state, 0) != 0 || run->machine->time(call, run->placed, false, &first) != 0 ||
            call->choose(call->state, to->fastest) != 0 ||
            run->machine->time(call, run->placed, false, &other) != 0)
            break;
        ratios[done] = other > 0 ? first / other : 1;
    }
    if (done > 0) to->gain = summarise(ratios, done);
    to->is_compared = done > 0 || (to->fastest == 0 && to->algorithms > 1);
    free(ratios);
}

// ---- an op ----------------------------------------------------------------------------------------------

static int time_calls(const struct host *host, const struct op *op, const struct operands *operands,
                      const struct operands *placed, const struct candidate *by, double began_us,
                      struct replayed *to, char reason[]) {
    struct run run = {.machine = host->machine,
                      .op = op,
                      .operands = operands,
                      .placed = placed,
                      .call = &by->call,
                      .threads = host->threads,
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
    bool is_first_look = op->max_samples < op->min_samples;
    if (status == 0 && by->call.algorithms > 1 && !is_first_look) compare_algorithms(&run, to);
    return status;
}

int replay_op(const struct host *host, const struct op *op, struct replayed *to, char reason[REASON_SIZE]) {
    double began = now_us();
    struct operands operands, placed;
    struct candidate best;
    *to = (struct replayed){.library = NULL};
    if (choose_type(host, op, &to->computed, reason) != 0 ||
        operands_make(op, to->computed, host->threads, &operands, reason) != 0 ||
        host->machine->place(&operands, &placed, reason) != 0)
        return -1;
    if (to->computed != op->type)
        add_note(to, "computed in %s, for there is no fast %s here", data_type_names[to->computed],
                 data_type_names[op->type]);
    if (op->threads > 0 && op->threads != host->threads && host->machine == &machine_host)
        add_note(to, "saved with %d thread%s a call, and timed with %d", op->threads,
                 op->threads == 1 ? "" : "s", host->threads);
    if (choose_library(host, op, &operands, &placed, &best, to, reason) != 0) return -1;
    to->library = best.library->name;
    snprintf(to->kernel, sizeof to->kernel, "%s", best.call.kernel);
    if (best.call.note[0] != '\0') add_note(to, "%s", best.call.note);
    int status = time_calls(host, op, &operands, &placed, &best, began, to, reason);
    end_candidate(&best);
    return status;
}
