// Whether ranks that are processes reach each other's memory: each fills its own, and reads that of all
// others. Run under mpirun with the stand-in of the driver; prints the way in which memory was shared.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"
#include "ranks/group_mpi.h"

enum { BYTES = 5000 };

// The number of peers with memory that differs from what they wrote.
static int wrong_peers(struct device *device, const struct shared_memory *memory) {
    unsigned char seen[BYTES], expected[BYTES];
    int wrong = 0;
    for (int peer = 0; peer < device->group->size; peer++) {
        if (device->reach == REACH_NONE && peer != device->group->rank) continue;
        memset(expected, peer + 1, sizeof expected);
        memset(seen, 0, sizeof seen);
        device->driver->cuMemcpyDtoHAsync(seen, memory->of[peer], sizeof seen, device->stream);
        if (!device_finish(device)) return 1;
        wrong += memcmp(seen, expected, sizeof seen) != 0;
    }
    return wrong;
}

static int try_memory(struct device *device) {
    struct group *group = device->group;
    struct shared_memory memory;
    char reason[REASON_SIZE];
    if (shared_memory_open(device, BYTES, false, "--arena", &memory, reason) != 0) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    device->driver->cuMemsetD8Async(memory.of[group->rank], (unsigned char)(group->rank + 1), BYTES,
                                    device->stream);
    int wrong = !device_finish(device) || !group_barrier(group) || wrong_peers(device, &memory) > 0;
    shared_memory_close(device, &memory);
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct group group;
    struct device_options options = {.workspace_bytes = 65536};
    char reason[REASON_SIZE] = "";
    int status = 1;
    if (group_open(&group, MPI_COMM_WORLD, 20, reason, sizeof reason) == 0 &&
        device_open(&group, &options, reason) == 0) {
        status = try_memory(device_of(&group));
        if (group.rank == 0) printf("%s\n", reach_names[device_of(&group)->reach]);
        device_close(&group);
    } else {
        fprintf(stderr, "%s\n", reason);
    }
    MPI_Finalize();
    return status;
}
