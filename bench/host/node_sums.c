// Sums between nodes; see node_sums.h. A tag has the slot and the step: messages of one slot do not overtake
// each other, and both ends use slots in the same order.
#include "node_sums.h"

#include <stdlib.h>

enum {
    WHOLE_UP_TO_BYTES = 4 << 10, // one step instead of two is faster, though it sends more
    ALIGN_BYTES = 64,
    STEPS = 2, // inputs, results
};

static bool open_slot(struct node_sum *sum, size_t nodes, size_t room) {
    sum->received = aligned_alloc(ALIGN_BYTES, room * nodes);
    sum->inputs = calloc(4 * nodes, sizeof *sum->inputs);
    if (sum->inputs == NULL) return false;
    sum->results = sum->inputs + nodes;
    sum->sent = sum->results + nodes;
    return sum->received != NULL;
}

bool node_sums_open(struct node_sums *sums, MPI_Comm comm, const struct kernels *kernels, size_t bytes) {
    *sums = (struct node_sums){.comm = comm, .kernels = kernels};
    MPI_Comm_size(comm, &sums->nodes);
    MPI_Comm_rank(comm, &sums->node);
    size_t piece = bytes / (size_t)sums->nodes + ALIGN_BYTES;
    sums->room = sums->nodes == 2 ? bytes : piece > WHOLE_UP_TO_BYTES ? piece : WHOLE_UP_TO_BYTES;
    sums->room = (sums->room + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    for (int slot = 0; slot < NODE_SUMS; slot++) {
        if (open_slot(&sums->in_flight[slot], (size_t)sums->nodes, sums->room)) continue;
        node_sums_close(sums);
        return false;
    }
    return true;
}

void node_sums_close(struct node_sums *sums) {
    for (int slot = 0; slot < NODE_SUMS; slot++) {
        free(sums->in_flight[slot].received);
        free(sums->in_flight[slot].inputs);
        sums->in_flight[slot] = (struct node_sum){0};
    }
}

// The bytes that `node` sums, and the first of them.
static size_t piece_of(const struct node_sums *sums, const struct node_sum *sum, int node, size_t *first) {
    if (sum->is_whole) {
        *first = 0;
        return sum->bytes;
    }
    size_t nodes = (size_t)sums->nodes, each = (sum->bytes + nodes - 1) / nodes;
    each = (each + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    *first = (size_t)node * each < sum->bytes ? (size_t)node * each : sum->bytes;
    return sum->bytes - *first < each ? sum->bytes - *first : each;
}

static int tag_of(int slot, int step) {
    return slot * STEPS + step;
}

static unsigned char *received_from(const struct node_sums *sums, const struct node_sum *sum, int node) {
    return sum->received + (size_t)node * sums->room;
}

// Each node begins with the next one, so that not all send to one node at once.
void node_sums_begin(struct node_sums *sums, int slot, enum dtype dtype, const void *mine, void *result,
                     size_t bytes) {
    struct node_sum *sum = &sums->in_flight[slot];
    sum->is_whole = sums->nodes == 2 || bytes <= WHOLE_UP_TO_BYTES;
    sum->dtype = dtype;
    sum->bytes = bytes;
    sum->mine = mine;
    sum->result = result;
    sum->input_count = sum->result_count = sum->sent_count = 0;
    size_t own_first, own = piece_of(sums, sum, sums->node, &own_first);
    for (int step = 1; step < sums->nodes; step++) {
        int from = (sums->node + sums->nodes - step) % sums->nodes;
        size_t first, piece = piece_of(sums, sum, from, &first);
        if (own > 0)
            MPI_Irecv(received_from(sums, sum, from), (int)own, MPI_BYTE, from, tag_of(slot, 0), sums->comm,
                      &sum->inputs[sum->input_count++]);
        if (!sum->is_whole && piece > 0)
            MPI_Irecv(sum->result + first, (int)piece, MPI_BYTE, from, tag_of(slot, 1), sums->comm,
                      &sum->results[sum->result_count++]);
    }
    for (int step = 1; step < sums->nodes; step++) {
        int to = (sums->node + step) % sums->nodes;
        size_t first, piece = piece_of(sums, sum, to, &first);
        if (piece > 0)
            MPI_Isend(sum->mine + first, (int)piece, MPI_BYTE, to, tag_of(slot, 0), sums->comm,
                      &sum->sent[sum->sent_count++]);
    }
    sum->state = NODE_SUM_INPUTS;
}

// Adds the inputs of all nodes, and sends the sum to nodes that have not added it themselves.
static void add_inputs(struct node_sums *sums, struct node_sum *sum, int slot) {
    const void *sources[MAX_RANKS];
    size_t first, bytes = piece_of(sums, sum, sums->node, &first);
    for (int node = 0; node < sums->nodes; node++) sources[node] = received_from(sums, sum, node);
    sources[sums->node] = sum->mine + first;
    kernels_sum(sums->kernels, sum->dtype, sum->result + first, sources, sums->nodes,
                bytes / dtype_sizes_bytes[sum->dtype]);
    for (int step = 1; !sum->is_whole && bytes > 0 && step < sums->nodes; step++) {
        MPI_Isend(sum->result + first, (int)bytes, MPI_BYTE, (sums->node + step) % sums->nodes,
                  tag_of(slot, 1), sums->comm, &sum->sent[sum->sent_count++]);
    }
}

static bool are_complete(int count, MPI_Request requests[]) {
    int complete = 1;
    MPI_Testall(count, requests, &complete, MPI_STATUSES_IGNORE);
    return complete != 0;
}

bool node_sums_is_over(struct node_sums *sums, int slot) {
    struct node_sum *sum = &sums->in_flight[slot];
    if (sum->state == NODE_SUM_INPUTS && are_complete(sum->input_count, sum->inputs)) {
        add_inputs(sums, sum, slot);
        sum->state = NODE_SUM_RESULTS;
    }
    if (sum->state == NODE_SUM_RESULTS && are_complete(sum->result_count, sum->results) &&
        are_complete(sum->sent_count, sum->sent))
        sum->state = NODE_SUM_OVER;
    return sum->state == NODE_SUM_OVER;
}
