// Stages of memory between two processes: each fills its own, and compares and fills the other's. The ranks
// may share a GPU, because no kernel of theirs waits for the other's.
#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"
#include "stages.h"

enum { PIECE = 1 << 20, FIRST_VALUE = 17, SECOND_VALUE = 101 }; // bytes that each rank writes at a place

static unsigned char value_of(int rank, int first, size_t at) {
    return (unsigned char)((size_t)(first + 2 * rank) + at * 7 + at / 251);
}

// Fills a piece of memory with this rank's values.
static bool fill(struct device *device, CUdeviceptr to, int first) {
    static unsigned char data[PIECE];
    for (size_t i = 0; i < PIECE; i++) data[i] = value_of(device->group->rank, first, i);
    CUresult result = device->driver->cuMemcpyHtoDAsync(to, data, PIECE, device->stream);
    return device_ok(device, result, "a copy to memory of a process") && device_finish(device);
}

// Whether a piece of memory has the values of `rank`; else `text`. False also after a failure of the group.
static bool compare(struct device *device, CUdeviceptr from, int rank, int first, char text[FINDING_SIZE]) {
    static unsigned char data[PIECE];
    CUresult result = device->driver->cuMemcpyDtoHAsync(data, from, PIECE, device->stream);
    if (!device_ok(device, result, "a copy from memory of a process") || !device_finish(device)) return false;
    for (size_t i = 0; i < PIECE; i++) {
        if (data[i] == value_of(rank, first, i)) continue;
        snprintf(text, FINDING_SIZE, "byte %zu that rank %d wrote is %u on rank %d, not %u", i, rank, data[i],
                 device->group->rank, value_of(rank, first, i));
        return false;
    }
    return true;
}

// Collective. The ranks fill their own memory, read the other's, fill a further piece of the other's, and
// read it in their own. False: `text`, or see group_failure.
static bool exchange(struct device *device, char text[FINDING_SIZE]) {
    struct group *group = device->group;
    int mine = group->rank, other = 1 - mine;
    CUdeviceptr own = device->arena.of[mine], peer = device->arena.of[other];
    bool right = fill(device, own, FIRST_VALUE) && group_barrier(group) &&
                 compare(device, peer, other, FIRST_VALUE, text);
    if (!group_all_right(group, right, text, FINDING_SIZE)) return false;
    right = fill(device, peer + PIECE, SECOND_VALUE) && group_barrier(group) &&
            compare(device, own + PIECE, other, SECOND_VALUE, text);
    return group_all_right(group, right, text, FINDING_SIZE);
}

enum stage_end stage_handles(struct group *group, const struct stage *stage, struct findings *findings) {
    struct device *device = device_of(group);
    char text[FINDING_SIZE] = "";
    (void)stage; // its options name the kind of handles
    if (device->reach == REACH_NONE) {
        bool is_tried = device->no_reach[0] != '\0';
        if (group->rank == 0)
            snprintf(findings->text, FINDING_SIZE, "%s",
                     is_tried            ? device->no_reach
                     : device->all_peers ? "the GPU or the driver offers none to this process"
                                         : "no peer access between the GPUs");
        return is_tried ? STAGE_FAILED : STAGE_SKIPPED;
    }
    bool right = exchange(device, text);
    if (group->rank == 0 && right) {
        snprintf(findings->text, FINDING_SIZE, "two processes read and wrote each other's memory on %s (%s)",
                 device->options.loopback ? "one GPU" : "two GPUs", reach_names[device->reach]);
    } else if (group->rank == 0) {
        snprintf(findings->text, FINDING_SIZE, "%s", text);
    }
    return right ? STAGE_OK : STAGE_FAILED;
}
