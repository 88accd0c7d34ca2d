// The state of kernels that waited for each other and gave up.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda/device/device.h"
#include "stages.h"

enum { NOTE_SIZE = 480, POLL_US = 1000, PATIENCE_NS = 1000000000 };

__attribute__((format(printf, 2, 3))) static void append(char note[NOTE_SIZE], const char *format, ...) {
    size_t used = strlen(note);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note + used, NOTE_SIZE - used, format, arguments);
    va_end(arguments);
}

// Whether all work of this rank's stream ends soon; a copy would wait for kernels that still run.
static bool is_idle(struct device *device) {
    const struct cuda_driver *driver = device->driver;
    uint64_t until_ns = clock_ns() + PATIENCE_NS;
    CUresult result = driver->cuEventRecord(device->after, device->stream);
    while (result == CUDA_SUCCESS) {
        result = driver->cuEventQuery(device->after);
        if (result != CUDA_ERROR_NOT_READY || clock_ns() > until_ns) break;
        result = CUDA_SUCCESS;
        usleep(POLL_US);
    }
    return result == CUDA_SUCCESS;
}

static bool fetch(struct device *device, void *to, CUdeviceptr from, size_t bytes) {
    return device->driver->cuMemcpyDtoHAsync(to, from, bytes, device->stream) == CUDA_SUCCESS &&
           is_idle(device);
}

// Describes the launches of a kernel on this rank.
static void note_kernel(struct device *device, enum cuda_kernel kernel, char note[NOTE_SIZE]) {
    struct RankState state;
    CUdeviceptr at = device->states + (size_t)kernel * sizeof state;
    if (device->users[kernel] == 0 || !fetch(device, &state, at, sizeof state)) return;
    append(note, "        rank %d: %s, %u launches%s\n", device->group->rank, cuda_kernel_facts[kernel].name,
           state.copies[0][0], state.gave_up ? ", gave up" : "");
}

void note_flags(struct group *group, struct findings *findings) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct device *device = device_of(group);
    uint32_t words[2 * MAX_TP]; // flags, and the epoch
    char note[NOTE_SIZE] = "";
    CUdeviceptr barriers = device->barrier_memory.of[group->rank];
    if (barriers == 0) return;
    if (!is_idle(device) || !fetch(device, words, barriers, sizeof words)) {
        append(note, "        rank %d: its flags cannot be read from the GPU\n", group->rank);
    } else {
        append(note, "        rank %d: barrier %u; flags of the ranks:", group->rank, words[MAX_TP]);
        for (int peer = 0; peer < group->size; peer++) append(note, " %u", words[peer]);
        append(note, "\n");
        for (int kernel = 0; kernel < CUDA_KERNELS; kernel++)
            note_kernel(device, (enum cuda_kernel)kernel, note);
    }
    pthread_mutex_lock(&lock);
    size_t used = strlen(findings->notes);
    snprintf(findings->notes + used, NOTES_SIZE - used, "%s", note);
    pthread_mutex_unlock(&lock);
}
