// Replays an op; see replay.h.
#include "replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "cold.h"

// A call above this gets no more samples than that; and above this the first one is among them.
static const double LONG_US = 1e6, FIRST_COUNTS_US = 5e4;
enum { SAMPLES_OF_LONG = 3 };

void host_open(struct host *host, int threads) {
    *host = (struct host){.threads = threads, .libraries = {&library_openblas, &library_onednn}};
    for (int i = 0; i < LIBRARIES; i++) {
        host->is_open[i] = host->libraries[i]->open(threads, host->absent[i]) == 0;
    }
}

// ---- what computes --------------------------------------------------------------------------------------

static const struct library *computes(const struct host *host, enum op_kind kind, enum data_type type) {
    for (int i = 0; i < LIBRARIES; i++) {
        if (host->is_open[i] && host->libraries[i]->can(kind, type)) return host->libraries[i];
    }
    return NULL;
}

// The library for an op, and the type: its own, or float32 for bfloat16, which holds all of its values.
static const struct library *choose(const struct host *host, const struct op *op, enum data_type *type,
                                    char reason[]) {
    const struct library *library = computes(host, op->kind, *type = op->type);
    if (library == NULL && op->type == BFLOAT16) library = computes(host, op->kind, *type = FLOAT32);
    if (library != NULL) return library;
    const char *kind = op->kind == OP_GEMM ? "matrix product" : "convolution";
    int length =
        snprintf(reason, REASON_SIZE, "nothing here computes a %s in %s", kind, data_type_names[op->type]);
    for (int i = 0; i < LIBRARIES && length < REASON_SIZE; i++) {
        bool would = op->type <= BFLOAT16 && (i == 1 || op->kind == OP_GEMM);
        if (!host->is_open[i] && would)
            length += snprintf(reason + length, (size_t)(REASON_SIZE - length), "; %s", host->absent[i]);
    }
    return NULL;
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

// One call, checked in full. A long one is a cold sample, too: what a first call does besides is little of
// it.
static int prove(struct run *run, struct samples *cold, char reason[]) {
    tensor_forget(&run->operands->out);
    make_cold(run->operands, run->threads);
    double from = now_us();
    if (run->call->run(run->call->state) != 0) {
        snprintf(reason, REASON_SIZE, "the library failed");
        return -1;
    }
    double us = now_us() - from;
    if (us > FIRST_COUNTS_US) cold->us[cold->count++] = us;
    if (us > LONG_US && run->least > SAMPLES_OF_LONG) run->least = SAMPLES_OF_LONG;
    return check_result(run->op, run->operands, run->threads, reason);
}

// Computes, checks, times, and checks some of what the timed calls left.
static int measure(struct run *run, double *room, struct replayed *to, char reason[]) {
    struct samples cold = {room, 0}, warm = {room + run->op->max_samples, 0};
    if (prove(run, &cold, reason) != 0) return -1;
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

static int time_call(const struct op *op, struct operands *operands, const struct call *call, int threads,
                     double began_us, struct replayed *to, char reason[]) {
    struct run run = {.op = op,
                      .operands = operands,
                      .call = call,
                      .threads = threads,
                      .began_us = began_us,
                      .least = op->min_samples,
                      .half_us = op->sampling_us / 2};
    double *room = malloc(2 * op->max_samples * sizeof *room);
    if (room == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    int status = measure(&run, room, to, reason);
    free(room);
    return status;
}

int replay_op(const struct host *host, const struct op *op, struct replayed *to, char reason[REASON_SIZE]) {
    double began = now_us();
    struct operands operands;
    struct call call;
    *to = (struct replayed){.library = NULL};
    const struct library *library = choose(host, op, &to->computed, reason);
    if (library == NULL || operands_make(op, to->computed, &operands, reason) != 0) return -1;
    int status = library->prepare(op, &operands, &call, reason);
    if (status == 0) {
        to->library = library->name;
        snprintf(to->kernel, sizeof to->kernel, "%s", call.kernel);
        if (to->computed != op->type)
            add_note(to, "computed in %s, for there is no fast %s here", data_type_names[to->computed],
                     data_type_names[op->type]);
        if (call.note[0] != '\0') add_note(to, "%s", call.note);
        status = time_call(op, &operands, &call, host->threads, began, to, reason);
        call.end(call.state);
    }
    return status;
}
