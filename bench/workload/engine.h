// What runs the steps of a program: the threads of a processor, or the streams of a GPU.
#ifndef BENCH_WORKLOAD_ENGINE_H
#define BENCH_WORKLOAD_ENGINE_H

#include <stdio.h>

#include "step.h"

enum { WORDS_SIZE = 160, NOTES_SIZE = 400 };

// Types as names of kernels have them.
static const char *const dtype_words[DTYPES] = {
    [DTYPE_FLOAT32] = "f32", [DTYPE_BFLOAT16] = "bf16", [DTYPE_FLOAT16] = "f16"};

// A rank cannot go on, and the others may wait for it anywhere: its reason becomes that of all, who end.
// Returns -1.
static inline int rank_fails(const struct group *group, const char *why, char reason[PROGRAM_REASON]) {
    char text[FAILURE_SIZE];
    snprintf(text, sizeof text, "rank %d: %.150s", group->rank, why);
    group_fail(group, text);
    snprintf(reason, PROGRAM_REASON, "%s", group_failure(group));
    return -1;
}

// What is to be run, and by whom. `transport` is the host's own; others have theirs.
struct engine_setup {
    struct program *program;
    struct group *group;
    const struct blas *blas;
    const struct transport_kind *transport;
    size_t channels, threads;
    enum wait wait;
    double patience_s; // that a GPU may show no progress before kernels that wait for each other give up
    void (*still_there)(void *context); // called now and then while a step makes progress
    void *context;
};

// What is known once it is open.
struct engine_words {
    const char *backend;          // "host", "cuda"
    const char *clock;            // of traces: "host_thread", "cupti", "event"
    const char *transport_kernel; // in names of kernels: "TWOSHOT", "MPI", "NCCL"
    char device[WORDS_SIZE], library[WORDS_SIZE];
    char gemm_kernels[DTYPES][WORDS_SIZE]; // what names of kernels begin with
    enum dtype computed_in[DTYPES];        // another than its own: elements are converted in a GEMM's time
    char note[NOTES_SIZE]; // what has to be known of the times and traces, "; " between two; "": nothing
    int channels, threads; // that are used
    int multiprocessors;
    int streams;           // of communication
    int tids[MAX_THREADS]; // of their threads; 0: it is no thread
};

struct engine {
    const char *name;
    bool needs_blas;
    bool fails_alike; // a step, give and take: on all ranks with the same problem; else a rank may alone
    // Collective. -1 with `reason`, alike on all ranks; or after rank_fails, when nothing is closed.
    int (*open)(const struct engine_setup *setup, void **state, char reason[PROGRAM_REASON]);
    void (*close)(void *state);
    void (*describe)(const void *state, struct engine_words *words);
    // Runs a step; `notes` for one that is noted. Returns how long it took, in nanoseconds; 0: it failed, and
    // `problem` says why.
    uint64_t (*step)(void *state, enum step_mode mode, struct step_notes *notes);
    const char *(*problem)(const void *state);
    // The program's arrays, to where steps work on them, and back. -1: it failed.
    int (*give)(void *state);
    int (*take)(void *state);
};

extern const struct engine engine_host, engine_cuda, engine_loopback;

// On how many GPUs steps can run with the driver and the libraries that are here. With a reason: 0 without
// cuBLASLt, 1 of several without NCCL, for our own kernels take all ranks on one.
int gpus_usable(char reason[PROGRAM_REASON]);

#endif
