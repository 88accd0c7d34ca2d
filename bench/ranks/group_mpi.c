// The group of ranks that MPI started; see group_mpi.h. MPI only helps the ranks to find their shared memory.
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "group_mpi.h"

static uint64_t make_run_id(MPI_Comm comm) {
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) id = clock_ns() ^ (uint64_t)getpid() << 32;
    MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
    return id;
}

static bool is_on_one_machine(MPI_Comm comm, int size) {
    MPI_Comm node;
    int node_size = 0;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &node_size);
    MPI_Comm_free(&node);
    return node_size == size;
}

// Maps the control block as group_map does, which itself needs it; 0, or an error of one of the ranks.
static int map_control(struct group *group, MPI_Comm comm) {
    int error = 0, worst, file = -1;
    size_t bytes = sizeof *group->control;
    if (group->rank == 0) file = group_make_segment(bytes, &error);
    int segment[3] = {(int)getpid(), file, error};
    MPI_Bcast(segment, 3, MPI_INT, 0, comm);
    error = segment[2];
    if (error == 0 && group->rank != 0) file = group_open_segment(segment[0], segment[1], &error);
    if (error == 0) group->control = group_map_segment(file, bytes, &error);
    MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MAX, comm); // rank 0 keeps it open until then
    if (file >= 0) close(file);
    if (worst != 0) group_unmap(group->control, bytes);
    return worst;
}

int group_open(struct group *group, MPI_Comm comm, double timeout_s, char reason[], size_t reason_size) {
    *group = (struct group){.timeout_s = timeout_s};
    _Static_assert(sizeof comm <= sizeof group->comm, "a communicator fits");
    memcpy(group->comm, &comm, sizeof comm);
    MPI_Comm_rank(comm, &group->rank);
    MPI_Comm_size(comm, &group->size);
    if (!group_size_is_possible(group->size)) {
        snprintf(reason, reason_size, "%d ranks; 2 to %d are possible: mpirun -n RANKS gentables-bench",
                 group->size, MAX_RANKS);
        return -1;
    }
    if (!is_on_one_machine(comm, group->size)) {
        snprintf(reason, reason_size, "the ranks are on several machines; all must be on one");
        return -1;
    }
    group->run_id = make_run_id(comm);
    int error = map_control(group, comm);
    if (error != 0) {
        snprintf(reason, reason_size, "%zu bytes of shared memory: %s", sizeof *group->control,
                 strerror(error));
        return -1;
    }
    MPI_Barrier(comm);
    group_begin(group);
    return 0;
}

bool group_mpi_all(const struct group *group, bool well) {
    int mine = well, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, group_comm(group));
    return all != 0;
}
