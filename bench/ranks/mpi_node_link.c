// Messages between the leaders of nodes; see mpi_node_link.h.
//
// Each leader sends the entries of its node to all other leaders. These are a few KiB for each of some dozens
// of nodes, so one step with more messages is faster than a tree with more steps. Nothing blocks: a peer that
// does not answer ends the wait as all waits of a group end.
#include "mpi_node_link.h"

#include <stdlib.h>
#include <string.h>

#include "group.h"
#include "node_link.h"

enum { TAG_ENTRIES = 1, TAG_FAILURE = 2, POLLS_BETWEEN_PROBES = 8 };

static const uint64_t SPREAD_NS = 200000000; // for other nodes to take a failure over, and to report it

struct mpi_link {
    struct node_link link;
    MPI_Comm comm;
    unsigned polls;
    int sent_count;          // requests of spread failures
    MPI_Request *failures;   // to each node
    MPI_Request *requests;   // to and from each other leader
    int *ranks;              // of one node after another, ascending
    size_t room;             // bytes of the entries of a node
    unsigned char *sent;     // `room` bytes
    unsigned char *received; // `room` bytes from each node
};

static struct mpi_link *link_of(const struct group *group) {
    return (struct mpi_link *)group->link;
}

// ---- exchange -----------------------------------------------------------------------------------

// Copies the entries of a node between the array and a message. Returns the bytes of the message.
static size_t copy_entries(const struct group *group, const struct shared *shared, int node,
                           unsigned char *message, bool to_message) {
    size_t used = 0;
    for (int i = 0; i < group->ranks_per_node; i++) {
        int rank = link_of(group)->ranks[node * group->ranks_per_node + i];
        if (shared->root != EVERY_RANK && shared->root != rank) continue;
        unsigned char *entry = (unsigned char *)shared->first + (size_t)rank * shared->stride;
        if (to_message) {
            memcpy(message + used, entry, shared->bytes);
        } else {
            memcpy(entry, message + used, shared->bytes);
        }
        used += shared->bytes;
    }
    return used;
}

static unsigned char *received_from(const struct mpi_link *link, int node) {
    return link->received + (size_t)node * link->room;
}

static bool exchange(struct group *group, const struct shared *shared) {
    struct mpi_link *link = link_of(group);
    int count = 0, done = 0, size = (int)copy_entries(group, shared, group->node, link->sent, true);
    for (int node = 0; node < group->nodes; node++) {
        if (node == group->node) continue;
        MPI_Irecv(received_from(link, node), (int)link->room, MPI_BYTE, group->leaders[node], TAG_ENTRIES,
                  link->comm, &link->requests[count++]);
        MPI_Isend(link->sent, size, MPI_BYTE, group->leaders[node], TAG_ENTRIES, link->comm,
                  &link->requests[count++]);
    }
    uint64_t polls = 0, since_ns = 0;
    for (;;) {
        MPI_Testall(count, link->requests, &done, MPI_STATUSES_IGNORE);
        if (done) break;
        if (!group_poll(group, &polls, &since_ns)) return false;
    }
    for (int node = 0; node < group->nodes; node++) {
        if (node != group->node) copy_entries(group, shared, node, received_from(link, node), false);
    }
    return true;
}

// ---- failures -----------------------------------------------------------------------------------

static void probe(const struct group *group) {
    int has_failed = 0;
    char reason[FAILURE_SIZE];
    MPI_Comm comm = link_of(group)->comm;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILURE, comm, &has_failed, MPI_STATUS_IGNORE);
    if (!has_failed) return;
    MPI_Recv(reason, sizeof reason, MPI_CHAR, MPI_ANY_SOURCE, TAG_FAILURE, comm, MPI_STATUS_IGNORE);
    reason[sizeof reason - 1] = '\0';
    group_take_failure(group, reason);
}

static void progress(const struct group *group) {
    if (link_of(group)->polls++ % POLLS_BETWEEN_PROBES == 0) probe(group);
}

// Other ranks may be in MPI, where they do not listen, so it does not wait until all have it.
static void spread_failure(const struct group *group) {
    struct mpi_link *link = link_of(group);
    const char *reason = group_failure(group);
    uint64_t until_ns = clock_ns() + SPREAD_NS;
    if (reason == NULL || link->sent_count > 0) return;
    for (int node = 0; node < group->nodes; node++) {
        if (node == group->node) continue;
        MPI_Isend(reason, FAILURE_SIZE, MPI_CHAR, group->leaders[node], TAG_FAILURE, link->comm,
                  &link->failures[link->sent_count++]);
    }
    while (clock_ns() < until_ns) probe(group);
}

// ---- open and close -----------------------------------------------------------------------------

static void free_link(struct mpi_link *link) {
    if (link == NULL) return;
    free(link->failures);
    free(link->requests);
    free(link->ranks);
    free(link->sent);
    free(link->received);
    free(link);
}

static void close_link(struct group *group) {
    struct mpi_link *link = link_of(group);
    MPI_Comm_free(&link->comm);
    free_link(link);
    group->link = NULL;
}

// NULL: out of memory.
static struct mpi_link *allocate_link(const struct group *group) {
    struct mpi_link *link = calloc(1, sizeof *link);
    if (link == NULL) return NULL;
    size_t nodes = (size_t)group->nodes;
    link->link = (struct node_link){
        .exchange = exchange, .progress = progress, .spread_failure = spread_failure, .close = close_link};
    link->room = (size_t)group->ranks_per_node * EXCHANGE_SIZE;
    link->failures = calloc(nodes, sizeof *link->failures);
    link->requests = calloc(2 * nodes, sizeof *link->requests);
    link->ranks = calloc((size_t)group->size, sizeof *link->ranks);
    link->sent = malloc(link->room);
    link->received = malloc(nodes * link->room);
    if (link->failures && link->requests && link->ranks && link->sent && link->received) return link;
    free_link(link);
    return NULL;
}

static void find_ranks(const struct group *group, MPI_Comm comm, struct mpi_link *link) {
    int counts[MAX_RANKS] = {0}, nodes[MAX_RANKS];
    MPI_Allgather(&group->node, 1, MPI_INT, nodes, 1, MPI_INT, comm);
    for (int rank = 0; rank < group->size; rank++) {
        int node = nodes[rank];
        link->ranks[node * group->ranks_per_node + counts[node]++] = rank;
    }
}

bool mpi_node_link_open(struct group *group, MPI_Comm comm) {
    struct mpi_link *link = allocate_link(group);
    int mine = link != NULL, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    if (!all) {
        free_link(link);
        return false;
    }
    MPI_Comm_dup(comm, &link->comm);
    find_ranks(group, comm, link);
    group->link = &link->link;
    return true;
}
