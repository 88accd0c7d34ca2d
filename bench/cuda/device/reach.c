// How ranks reach each other's memory; see device.h.
#include "device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const reach_names[] = {"loopback", "process", "fabric", "file", "ipc", "none"};

// Whether this rank may make memory with such a handle, which the hardware's support does not guarantee.
static bool handle_works(struct device *device, CUmemAllocationHandleType type) {
    const struct cuda_driver *driver = device->driver;
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = type,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal}};
    CUmemGenericAllocationHandle handle;
    union {
        CUmemFabricHandle fabric;
        int file;
    } ticket;
    size_t bytes = 0;
    if (driver->cuMemGetAllocationGranularity(&bytes, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
            CUDA_SUCCESS ||
        driver->cuMemCreate(&handle, bytes, &wanted, 0) != CUDA_SUCCESS)
        return false;
    bool works = driver->cuMemExportToShareableHandle(&ticket, handle, type, 0) == CUDA_SUCCESS;
    if (works && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) close(ticket.file);
    driver->cuMemRelease(handle);
    return works;
}

// Whether processes may share memory in this way.
static bool may_use(const struct device *device, enum reach reach) {
    const char *only = device->options.only_handles;
    if (only != NULL && strcmp(only, reach_names[reach]) != 0) return false;
    return reach == REACH_FABRIC ? device->can_fabric : reach == REACH_FILE ? device->can_file : true;
}

// The first way between processes that may be used, from `reach` on.
static enum reach first_way(const struct device *device, enum reach reach) {
    while (reach < REACH_NONE && !may_use(device, reach)) reach++;
    return reach;
}

void reach_choose(struct device *device) {
    bool fabric = device->can_fabric && handle_works(device, CU_MEM_HANDLE_TYPE_FABRIC);
    bool file = device->can_file && handle_works(device, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    device->can_fabric = group_min(device->group, fabric) != 0;
    device->can_file = group_min(device->group, file) != 0;
    bool all_peers = group_min(device->group, device->all_peers) != 0;
    device->has_hidden_peers = group_min(device->group, !device->has_hidden_peers) == 0;
    device->all_peers = all_peers;
    bool shares_process = device->group->shares_process;
    device->reach = !all_peers                 ? REACH_NONE
                    : !shares_process          ? first_way(device, REACH_FABRIC)
                    : device->options.loopback ? REACH_LOOPBACK
                                               : REACH_PROCESS;
}

int reach_open_arena(struct device *device, size_t bytes, char reason[REASON_SIZE]) {
    for (;;) {
        int status = shared_memory_open(device, bytes, false, "--arena", &device->arena, reason);
        enum reach tried = device->reach;
        bool has_next = tried >= REACH_FABRIC && tried < REACH_NONE;
        if (status != -2 || group_failure(device->group) != NULL || !has_next) return status;
        device->reach = first_way(device, tried + 1);
        snprintf(device->no_reach, REASON_SIZE, "ranks share no memory: %s, %.100s", reach_names[tried],
                 reason);
    }
}
