// Streams of a GPU; see gpu_queues.h.
#include "gpu_queues.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "ranks/group_mpi.h"

bool gpu_ok(const struct gpu_queues *queues, CUresult result, const char *what) {
    return driver_ok(queues->driver, result, what, queues->problem, PROGRAM_REASON);
}

bool gpu_queues_choose(struct gpu_queues *queues, const struct group *group) {
    int count = 0;
    queues->driver = driver_load(queues->problem, PROGRAM_REASON);
    if (queues->driver == NULL) return false;
    if (!gpu_ok(queues, queues->driver->cuDeviceGetCount(&count), "the number of GPUs")) return false;
    queues->number = count >= group->size ? group->rank : 0;
    return gpu_ok(queues, queues->driver->cuDeviceGet(&queues->device, queues->number), "the GPU");
}

bool gpu_queues_are_own(struct gpu_queues *queues, const struct group *group) {
    CUuuid mine = {{0}}, all[MAX_NODE_RANKS];
    int count = 0;
    bool has_uuid = gpu_ok(queues, queues->driver->cuDeviceGetUuid(&mine, queues->device), "its UUID");
    MPI_Allgather(&mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, group_comm(group));
    queues->driver->cuDeviceGetCount(&count);
    for (int rank = 0; has_uuid && rank < group->size; rank++) {
        if (rank == group->rank || memcmp(&all[rank], &mine, sizeof mine) != 0) continue;
        snprintf(queues->problem, PROGRAM_REASON,
                 "%d ranks and %d GPU%s: each rank needs a GPU; use fewer --ranks, or --transport builtin",
                 group->size, count, count == 1 ? "" : "s");
        return false;
    }
    return has_uuid;
}

bool gpu_queues_open(struct gpu_queues *queues) {
    int number = queues->number;
    queues->driver = gpu_gemms_open(number, &queues->compute, queues->library, sizeof queues->library,
                                    queues->problem, PROGRAM_REASON);
    if (queues->driver == NULL) return false;
    const struct cuda_driver *driver = queues->driver;
    const char *missing = gpu_streams_load();
    if (missing != NULL) snprintf(queues->problem, PROGRAM_REASON, "the CUDA driver has no %s", missing);
    return missing == NULL && gpu_ok(queues, driver->cuDeviceGet(&queues->device, number), "the GPU") &&
           gpu_ok(queues, driver->cuDeviceGetName(queues->name, sizeof queues->name, queues->device),
                  "its name") &&
           gpu_ok(queues,
                  driver->cuDeviceGetAttribute(&queues->multiprocessors,
                                               CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, queues->device),
                  "its multiprocessors") &&
           gpu_ok(queues, gpu_streams_make_first(&queues->communication), "a stream");
}

bool gpu_record(const struct gpu_queues *queues, CUevent event, CUstream stream) {
    return gpu_ok(queues, queues->driver->cuEventRecord(event, stream), "an event");
}

bool gpu_follow(const struct gpu_queues *queues, CUstream stream, CUevent event) {
    return gpu_ok(queues, gpu_streams.cuStreamWaitEvent(stream, event, 0), "a wait");
}

bool gpu_multiply(const struct gpu_queues *queues, CUstream stream, struct gpu_gemm *gemm,
                  const struct gpu_events *around) {
    if (around != NULL && !gpu_record(queues, around->begin, stream)) return false;
    if (!gpu_gemm_enqueue(gemm)) {
        snprintf(queues->problem, PROGRAM_REASON, "cuBLASLt rejects a GEMM that it accepted before");
        return false;
    }
    return around == NULL || gpu_record(queues, around->end, stream);
}

bool gpu_finish_streams(const struct gpu_queues *queues) {
    return gpu_ok(queues, gpu_streams.cuStreamSynchronize(queues->communication), "the GPU") &&
           gpu_ok(queues, gpu_streams.cuStreamSynchronize(queues->compute), "the GPU");
}

uint64_t gpu_ns_between(const struct gpu_queues *queues, CUevent first, CUevent second) {
    float ms = 0;
    gpu_ok(queues, queues->driver->cuEventElapsedTime(&ms, first, second), "a time");
    return (uint64_t)((double)ms * 1e6);
}

void gpu_queues_describe(const struct gpu_queues *queues, bool by_cupti,
                         struct engine_description *description) {
    description->backend = "cuda";
    description->clock = by_cupti ? "cupti" : "event";
    description->streams = 1;
    description->multiprocessors = queues->multiprocessors;
    snprintf(description->device, TEXT_SIZE, "%s", queues->name);
    for (int i = 0; i < DTYPES; i++) {
        snprintf(description->gemm_kernels[i], TEXT_SIZE, "cublasLt_gemm_%s", short_dtype_names[i]);
        description->computed_in[i] = (enum dtype)i;
    }
}

void gpu_add_note(char notes[NOTES_SIZE], const char *text) {
    size_t length = strlen(notes), begin = length + (length > 0 ? 2 : 0);
    snprintf(notes + length, NOTES_SIZE - length, "%s%s", length > 0 ? "; " : "", text);
    for (size_t i = begin; i < NOTES_SIZE && notes[i] != '\0'; i++)
        if (notes[i] == ';') notes[i] = ',';
}
