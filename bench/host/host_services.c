// Services for plug-ins on the host: a duplicate of MPI's communicator for each library, and memory between
// inaccessible pages. See calls/plugin_services.h.
#include "calls/plugin_services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ranks/group_mpi.h"

struct own {
    MPI_Comm comm;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
};

static int open_services(struct group *group, unsigned comm, gt_rank *rank, void **own,
                         char reason[REASON_SIZE]) {
    (void)comm; // there always is one, since the callbacks use it
    struct own *made = calloc(1, sizeof *made);
    int length;
    if (group_min(group, made != NULL) == 0) {
        snprintf(reason, REASON_SIZE, "out of memory");
        free(made);
        return -1;
    }
    MPI_Comm_dup(group_comm(group), &made->comm);
    MPI_Get_library_version(made->library, &length);
    made->library[strcspn(made->library, ",\n")] = '\0';
    rank->device = -1;
    rank->comm_kind = GT_COMM_MPI;
    rank->comm = &made->comm;
    rank->comm_library = made->library;
    *own = made;
    return 0;
}

static void close_services(void *own) {
    struct own *made = own;
    MPI_Comm_free(&made->comm);
    free(made);
}

static int allgather(void *own, const void *in, void *out, size_t bytes) {
    MPI_Comm comm = ((struct own *)own)->comm;
    if (bytes > INT32_MAX) return -1;
    return MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, comm) == MPI_SUCCESS ? 0 : -1;
}

static int barrier(void *own) {
    return MPI_Barrier(((struct own *)own)->comm) == MPI_SUCCESS ? 0 : -1;
}

static void enter(struct group *group) {
    (void)group;
}

// ---- memory -------------------------------------------------------------------------------------

static int reserve(struct group *group, struct guarded *buffer, size_t bytes) {
    (void)group;
    buffer->mapped_bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    buffer->reserved_bytes = buffer->mapped_bytes + 2 * PAGE_BYTES;
    void *map = mmap(NULL, buffer->reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return -1;
    buffer->reserved = map;
    buffer->mapped = buffer->reserved + PAGE_BYTES;
    if (mprotect(buffer->mapped, buffer->mapped_bytes, PROT_READ | PROT_WRITE) == 0) return 0;
    munmap(map, buffer->reserved_bytes);
    return -1;
}

static void give_back(struct group *group, struct guarded *buffer) {
    (void)group;
    munmap(buffer->reserved, buffer->reserved_bytes);
}

static bool copy(struct group *group, void *to, const void *from, size_t bytes) {
    (void)group;
    memcpy(to, from, bytes);
    return true;
}

static bool fill(struct group *group, void *to, int byte, size_t bytes) {
    (void)group;
    memset(to, byte, bytes);
    return true;
}

static bool compare(struct group *group, const void *is, const void *should, size_t bytes, bool *same) {
    (void)group;
    *same = memcmp(is, should, bytes) == 0;
    return true;
}

static size_t no_device(const struct group *group) {
    (void)group;
    return 0;
}

const struct plugin_services host_plugin_services = {
    .memory = GT_MEMORY_HOST,
    .where = "host memory",
    .comms = 1u << GT_COMM_MPI,
    .comm_name = "MPI's",
    .alignment = CACHE_LINE,
    .open = open_services,
    .close = close_services,
    .allgather = allgather,
    .barrier = barrier,
    .enter = enter,
    .reserve = reserve,
    .give_back = give_back,
    .put = copy,
    .get = copy,
    .fill = fill,
    .compare = compare,
    .device_bytes = no_device,
};
