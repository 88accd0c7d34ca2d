// Engines run the steps of a program, by threads of a processor or streams of a GPU.
#ifndef BENCH_WORKLOAD_ENGINE_H
#define BENCH_WORKLOAD_ENGINE_H

#include <stdio.h>

#include "step.h"

enum { TEXT_SIZE = 160, NOTES_SIZE = 400 };

// Data types in names of kernels, as NCCL has them.
static const char *const short_dtype_names[DTYPES] = {
    [DTYPE_FLOAT32] = "f32", [DTYPE_BFLOAT16] = "bf16", [DTYPE_FLOAT16] = "f16"};

// For a rank that cannot continue while others may wait for it anywhere: its reason becomes that of all
// ranks, and they end. Returns -1.
static inline int rank_fails(const struct group *group, const char *why, char reason[PROGRAM_REASON]) {
    char text[FAILURE_SIZE];
    snprintf(text, sizeof text, "rank %d: %.150s", group->rank, why);
    group_fail(group, text);
    snprintf(reason, PROGRAM_REASON, "%s", group_failure(group));
    return -1;
}

// A program and how to run it. `transport` is of the host; GPUs have their own.
struct engine_setup {
    struct program *program;
    struct group *group;
    const struct blas *blas;
    const struct transport_kind *transport;
    size_t channels, threads;
    enum wait wait;
    double patience_s; // without progress on a GPU, after which kernels that wait for each other give up
    void (*on_progress)(void *context); // called while a step makes progress
    void *context;
};

// Describes an open engine.
struct engine_description {
    const char *backend;          // "host", "cuda"
    const char *clock;            // of traces: "host_thread", "cupti", "event"
    const char *transport_kernel; // in names of kernels: "TWOSHOT", "MPI", "NCCL"
    char device[TEXT_SIZE], library[TEXT_SIZE];
    char gemm_kernels[DTYPES][TEXT_SIZE]; // the beginning of names of kernels
    enum dtype computed_in[DTYPES];       // if different, elements are converted within a GEMM's time
    char note[NOTES_SIZE];                // limitations of times and traces, separated by "; "; "": none
    int channels, threads;                // in use
    int multiprocessors;
    int streams;           // of communication
    int tids[MAX_THREADS]; // of their threads; 0: not a thread
};

struct engine {
    const char *name;
    bool needs_blas;
    bool fails_on_all_ranks; // step and move never fail on one rank alone
    // Collective. -1 with `reason`, the same on all ranks; or after rank_fails, and then nothing is closed.
    int (*open)(const struct engine_setup *setup, void **state, char reason[PROGRAM_REASON]);
    void (*close)(void *state);
    void (*describe)(const void *state, struct engine_description *description);
    // Runs a step, with `notes` if it is noted. Returns its time in nanoseconds; 0: it failed, and `problem`
    // has the reason.
    uint64_t (*step)(void *state, enum step_mode mode, struct step_notes *notes);
    const char *(*problem)(const void *state);
    // Copies the program's arrays to where steps use them (`to_gpu`), and back. -1: it failed. NULL: they are
    // there.
    int (*move)(void *state, bool to_gpu);
};

extern const struct engine engine_host, engine_cuda, engine_loopback;

// The number of GPUs on which steps can run with this machine's driver and libraries. Without cuBLASLt it is
// 0, and without NCCL at most 1, because our own kernels need all ranks on one GPU; `reason` is set.
int gpus_usable(char reason[PROGRAM_REASON]);

#endif
