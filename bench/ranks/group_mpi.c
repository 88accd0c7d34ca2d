// The group of ranks that MPI started; see group_mpi.h. On one node, MPI only helps the ranks to find their
// shared memory.
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elements/fnv1a.h"
#include "group_mpi.h"
#include "mpi_node_link.h"

static uint64_t make_run_id(MPI_Comm comm) {
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) id = clock_ns() ^ (uint64_t)getpid() << 32;
    MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
    return id;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = fnv1a_add(hash, ((const unsigned char *)data)[i]);
    return hash;
}

// The same for ranks that share memory, which need one kernel, one host name and one /dev/shm. MPI's own
// answer, MPI_COMM_TYPE_SHARED, is wrong under Open MPI 4.1.4 with PMIX_MCA_gds=hash.
static uint64_t node_key(void) {
    char boot_id[64] = "", host[256] = "";
    struct stat memory = {.st_dev = 0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL && fgets(boot_id, sizeof boot_id, file) == NULL) boot_id[0] = '\0';
    if (file != NULL) fclose(file);
    gethostname(host, sizeof host - 1);
    stat("/dev/shm", &memory);
    uint64_t hash = hash_bytes(FNV1A_START, boot_id, sizeof boot_id);
    return hash_bytes(hash_bytes(hash, host, sizeof host), &memory.st_dev, sizeof memory.st_dev);
}

// Finds the nodes of the group. The first rank of a node is its leader. -1 with `reason` if nodes differ in
// their number of ranks, or have too many.
static int find_nodes(struct group *group, MPI_Comm comm, char reason[], size_t reason_size) {
    uint64_t mine = node_key(), keys[MAX_RANKS];
    int counts[MAX_RANKS] = {0}; // of the ranks of each node
    MPI_Allgather(&mine, 1, MPI_UINT64_T, keys, 1, MPI_UINT64_T, comm);
    for (int rank = 0; rank < group->size; rank++) {
        int node = 0;
        while (node < group->nodes && keys[group->leaders[node]] != keys[rank]) node++;
        if (node == group->nodes) group->leaders[group->nodes++] = rank;
        if (keys[rank] == mine) {
            group->node = node;
            if (rank == group->rank) group->local_index = counts[node];
            if (counts[node] < MAX_NODE_RANKS) group->local[counts[node]] = rank;
        }
        counts[node]++;
    }
    group->ranks_per_node = counts[0];
    for (int node = 1; node < group->nodes; node++) {
        if (counts[node] == counts[0]) continue;
        snprintf(reason, reason_size,
                 "the nodes of ranks 0 and %d have %d and %d ranks; start the same number on every node",
                 group->leaders[node], counts[0], counts[node]);
        return -1;
    }
    return group_size_is_possible(group->size, group->ranks_per_node, reason, reason_size) ? 0 : -1;
}

// Maps the control block of this node as group_map does, which itself needs it; 0, or an error of one of the
// ranks.
static int map_control(struct group *group, MPI_Comm comm) {
    int error = 0, worst, file = -1, all[MAX_RANKS][3];
    size_t bytes = control_bytes(group->size);
    bool is_leader = group->local_index == 0;
    if (is_leader) file = group_make_segment(bytes, &error);
    int mine[3] = {(int)getpid(), file, error}, *segment = all[group->local[0]];
    MPI_Allgather(mine, 3, MPI_INT, all, 3, MPI_INT, comm);
    error = segment[2];
    if (error == 0 && !is_leader) file = group_open_segment(segment[0], segment[1], &error);
    if (error == 0) group->control = group_map_segment(file, bytes, &error);
    MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MAX, comm); // the leader keeps it open until then
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
    if (!group_size_is_possible(group->size, 1, reason, reason_size)) return -1;
    if (find_nodes(group, comm, reason, reason_size) != 0) return -1;
    group->run_id = make_run_id(comm);
    int error = map_control(group, comm);
    if (error != 0) {
        snprintf(reason, reason_size, "%zu bytes of shared memory: %s", control_bytes(group->size),
                 strerror(error));
        return -1;
    }
    if (group->nodes > 1 && !mpi_node_link_open(group, comm)) {
        group_unmap(group->control, control_bytes(group->size));
        snprintf(reason, reason_size, "out of memory");
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
