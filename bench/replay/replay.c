// Replays an op; see replay.h.
#include "replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "cold.h"

// A call above this gets no more samples than that; and above this the first one is among them.
static const double LONG_US = 1e6, FIRST_COUNTS_US = 5e3;
enum { SAMPLES_OF_LONG = 3 };

// Whether oneDNN's products in float32 are made for this processor; elsewhere OpenBLAS's are faster.
static bool prefers_onednn(void) {
#if defined __x86_64__
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

void host_open(struct host *host, int threads, bool tries_all) {
    *host = (struct host){.threads = threads, .tries_all = tries_all};
    host->libraries[0] = prefers_onednn() ? &library_onednn : &library_openblas;
    host->libraries[1] = prefers_onednn() ? &library_openblas : &library_onednn;
    for (int i = 0; i < LIBRARIES; i++) {
        host->is_open[i] = host->libraries[i]->open(threads, host->absent[i]) == 0;
    }
}

// ---- what computes --------------------------------------------------------------------------------------

static bool computes(const struct host *host, enum op_kind kind, enum data_type type) {
    for (int i = 0; i < LIBRARIES; i++) {
        if (host->is_open[i] && host->libraries[i]->can(kind, type)) return true;
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
    for (int i = 0; i < LIBRARIES && length < REASON_SIZE; i++) {
        bool would = op->type <= BFLOAT16 && (host->libraries[i] == &library_onednn || op->kind == OP_GEMM);
        if (!host->is_open[i] && would)
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

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

// The samples of one kind of calls.
struct samples {
    double *us;
    size_t count;
};

struct run {
    const struct op *op;
    struct operands *operands;
    const struct call *call;
    double began_us; // the whole op
    size_t least;    // samples of each kind
    int threads;
    double half_us; // for the samples of one kind beyond the least
};

static void make_cold(const struct operands *operands, int threads) {
    const struct tensor *const tensors[] = {&operands->a, &operands->b, &operands->c, &operands->out};
    enum { TENSORS = sizeof tensors / sizeof tensors[0] };
    struct range ranges[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        ranges[i] = (struct range){tensors[i]->data, tensors[i]->count * data_type_size(tensors[i]->type)};
    }
    cold_forget(ranges, TENSORS, threads);
}

static bool wants_more(const struct run *run, const struct samples *samples, double kind_began_us) {
    double now = now_us();
    if (samples->count == 0) return true;
    if (run->op->limit_us > 0 && now - run->began_us > run->op->limit_us) return false;
    if (samples->count < run->least) return true;
    return samples->count < run->op->max_samples && now - kind_began_us < run->half_us;
}

// Times calls until there are enough, those that `to` has included. -1: the library failed.
static int sample(struct run *run, bool is_cold, struct samples *to) {
    double began = now_us();
    while (wants_more(run, to, began)) {
        if (is_cold) make_cold(run->operands, run->threads);
        double from = now_us();
        if (run->call->run(run->call->state) != 0) return -1;
        double us = now_us() - from;
        to->us[to->count++] = us;
        if (us > LONG_US && run->least > SAMPLES_OF_LONG) run->least = SAMPLES_OF_LONG;
    }
    return 0;
}

static void tell_samples(const struct run *run, const struct samples *cold, const struct samples *warm,
                         struct replayed *to) {
    size_t fewest = cold->count < warm->count ? cold->count : warm->count;
    if (run->least < run->op->min_samples) add_note(to, "a call takes more than 1 s: %zu samples", fewest);
    if (fewest < run->least) add_note(to, "%zu samples: the budget was used up", fewest);
}

static struct timed timed_of(const struct samples *samples) {
    double total = 0;
    for (size_t i = 0; i < samples->count; i++) total += samples->us[i];
    return (struct timed){total / (double)samples->count, summarise(samples->us, samples->count)};
}

// ---- an op ----------------------------------------------------------------------------------------------

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

// The first call, checked in full; and another one, where it is wanted and the first may have done much
// besides.
static int prove(const struct op *op, struct operands *operands, int threads, bool with_another,
                 struct candidate *candidate, char reason[]) {
    const struct call *call = &candidate->call;
    tensor_forget(&operands->out);
    make_cold(operands, threads);
    double from = now_us();
    int status = call->run(call->state);
    candidate->first_us = candidate->shorter_us = now_us() - from;
    if (status == 0 && check_result(op, operands, threads, reason) != 0) return -1;
    if (status == 0 && with_another && candidate->first_us < FIRST_COUNTS_US) {
        from = now_us();
        status = call->run(call->state);
        candidate->shorter_us = fmin(candidate->first_us, now_us() - from);
    }
    if (status != 0) snprintf(reason, REASON_SIZE, "the library failed");
    return status;
}

// The first library that computes the op, or the fastest of all; the note says what the others did. -1, with
// a reason: none gives the right result.
static int choose_library(const struct host *host, const struct op *op, struct operands *operands,
                          struct candidate *best, struct replayed *to, char reason[]) {
    best->library = NULL;
    for (int i = 0; i < LIBRARIES; i++) {
        const struct library *library = host->libraries[i];
        struct candidate candidate = {.library = library};
        if (!host->is_open[i] || !library->can(op->kind, to->computed)) continue;
        if (best->library != NULL && !host->tries_all) continue;
        int status = library->prepare(op, operands, &candidate.call, reason);
        if (status != 0) candidate.library = NULL; // nothing to end
        if (status == 0) status = prove(op, operands, host->threads, host->tries_all, &candidate, reason);
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
    tensor_forget(&run->operands->out);
    if (sample(run, true, &cold) != 0 || sample(run, false, &warm) != 0) {
        snprintf(reason, REASON_SIZE, "the library failed in a later call");
        return -1;
    }
    if (check_elements(run->op, run->operands, reason) != 0) return -1;
    tell_samples(run, &cold, &warm, to);
    to->cold = timed_of(&cold);
    to->warm = timed_of(&warm);
    return 0;
}

static int time_calls(const struct op *op, struct operands *operands, const struct candidate *by, int threads,
                      double began_us, struct replayed *to, char reason[]) {
    struct run run = {.op = op,
                      .operands = operands,
                      .call = &by->call,
                      .threads = threads,
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
    return status;
}

int replay_op(const struct host *host, const struct op *op, struct replayed *to, char reason[REASON_SIZE]) {
    double began = now_us();
    struct operands operands;
    struct candidate best;
    *to = (struct replayed){.library = NULL};
    if (choose_type(host, op, &to->computed, reason) != 0 ||
        operands_make(op, to->computed, &operands, reason) != 0)
        return -1;
    if (to->computed != op->type)
        add_note(to, "computed in %s, for there is no fast %s here", data_type_names[to->computed],
                 data_type_names[op->type]);
    if (choose_library(host, op, &operands, &best, to, reason) != 0) return -1;
    to->library = best.library->name;
    snprintf(to->kernel, sizeof to->kernel, "%s", best.call.kernel);
    if (best.call.note[0] != '\0') add_note(to, "%s", best.call.note);
    int status = time_calls(op, &operands, &best, host->threads, began, to, reason);
    end_candidate(&best);
    return status;
}
