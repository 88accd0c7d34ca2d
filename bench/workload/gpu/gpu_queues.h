// A GPU with a stream for GEMMs and one of higher priority for collectives, and the work on both.
// Functions that return bool are false after a failure, and `problem` is the reason.
#ifndef BENCH_WORKLOAD_GPU_QUEUES_H
#define BENCH_WORKLOAD_GPU_QUEUES_H

#include "gpu_gemms.h"
#include "gpu_streams.h"
#include "workload/engine.h"

struct gpu_queues {
    char *problem; // the engine's, of PROGRAM_REASON bytes
    int number;    // of the GPU in this process
    const struct cuda_driver *driver;
    CUdevice device;
    CUstream compute, communication;
    int multiprocessors;
    char name[100], library[TEXT_SIZE]; // of the GPU; of cuBLASLt
};

// Whether a call of the driver succeeded; if not, the problem begins with `what`.
bool gpu_ok(const struct gpu_queues *queues, CUresult result, const char *what);

// Chooses the GPU with the rank's number, or the first, if this process sees fewer GPUs than there are ranks:
// some launchers show each rank another GPU.
bool gpu_queues_choose(struct gpu_queues *queues, const struct group *group);

// Collective. Whether no other rank has chosen this rank's GPU.
bool gpu_queues_are_own(struct gpu_queues *queues, const struct group *group);

// Opens the GPU with the number that is set.
bool gpu_queues_open(struct gpu_queues *queues);

bool gpu_record(const struct gpu_queues *queues, CUevent event, CUstream stream);

// What comes next in the stream begins after the event.
bool gpu_follow(const struct gpu_queues *queues, CUstream stream, CUevent event);

// Enqueues a GEMM, between two events if there are any.
bool gpu_multiply(const struct gpu_queues *queues, CUstream stream, struct gpu_gemm *gemm,
                  const struct gpu_events *around);

// Waits until the GPU is idle: only then are CUPTI's records complete.
bool gpu_finish_streams(const struct gpu_queues *queues);

// Nanoseconds between two events that have passed.
uint64_t gpu_ns_between(const struct gpu_queues *queues, CUevent first, CUevent second);

// Fills what the engines of GPUs have in common.
void gpu_queues_describe(const struct gpu_queues *queues, bool by_cupti,
                         struct engine_description *description);

// Adds a note after "; ", which separates notes; semicolons in the text become commas.
void gpu_add_note(char notes[NOTES_SIZE], const char *text);

#endif
