// Shares of ranks; see traffic.h.
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool splits_read(const char *text, uint64_t *splits) {
    bool moves = false;
    *splits = 0;
    for (int index = 0; index < SPLITS_MAX; index++) {
        char *end;
        unsigned long weight = strtoul(text, &end, 10);
        if (end == text || text[0] < '0' || text[0] > '9' || weight > SPLITS_LARGEST) return false;
        *splits |= (uint64_t)(weight + 1) << index * SPLITS_BITS;
        moves = moves || weight > 0;
        if (*end == '\0') return moves;
        if (*end != ':') return false;
        text = end + 1;
    }
    return false;
}

void splits_print(uint64_t splits, char text[SPLITS_TEXT]) {
    text[0] = '\0';
    for (; splits != 0; splits >>= SPLITS_BITS) {
        size_t used = strlen(text);
        snprintf(text + used, SPLITS_TEXT - used, "%s%u", used > 0 ? ":" : "", (unsigned)(splits & 15) - 1);
    }
}

static size_t weight_of(uint64_t splits, int rank) {
    int count = 0;
    while (count < SPLITS_MAX && splits >> count * SPLITS_BITS != 0) count++;
    return count == 0 ? 1 : (splits >> rank % count * SPLITS_BITS & 15) - 1;
}

static size_t largest_weight(uint64_t splits, int ranks) {
    size_t largest = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (weight_of(splits, rank) > largest) largest = weight_of(splits, rank);
    }
    return largest;
}

bool traffic_moves(enum op op, uint64_t splits, int ranks) {
    return op != OP_ALLTOALLV || largest_weight(splits, ranks) > 0;
}

size_t traffic_unit(enum op op, uint64_t splits, int ranks) {
    switch (op) {
    case OP_ALLREDUCE:
    case OP_BROADCAST: return 1;
    case OP_ALLTOALLV: // by the rank that receives most
        if (traffic_moves(op, splits, ranks)) return (size_t)ranks * largest_weight(splits, ranks);
        return (size_t)ranks;
    default: return (size_t)ranks;
    }
}

// The share that a rank sends to each rank, and its offset.
static void share_out(uint64_t splits, size_t unit_elements, int ranks, size_t shares[], size_t begins[]) {
    size_t at = 0;
    for (int rank = 0; rank < ranks; rank++) {
        shares[rank] = weight_of(splits, rank) * unit_elements;
        begins[rank] = at;
        at += shares[rank];
    }
}

static size_t total(const size_t counts[], int ranks) {
    size_t sum = 0;
    for (int rank = 0; rank < ranks; rank++) sum += counts[rank];
    return sum;
}

static void receive_from_all(struct traffic *traffic, size_t count, int ranks, bool one_behind_another) {
    for (int rank = 0; rank < ranks; rank++) {
        traffic->received[rank] = count;
        traffic->receive_at[rank] = one_behind_another ? (size_t)rank * count : 0;
    }
    traffic->receive_elements = one_behind_another ? (size_t)ranks * count : count;
}

void traffic_of(enum op op, uint64_t splits, size_t elements, int rank, int ranks, int root,
                struct traffic *traffic) {
    size_t share = elements / traffic_unit(op, splits, ranks);
    *traffic = (struct traffic){.largest = share * largest_weight(splits, ranks)};
    switch (op) {
    case OP_BROADCAST:
        for (int to = 0; to < ranks && rank == root; to++) traffic->sent[to] = elements;
        traffic->received[root] = elements;
        traffic->send_elements = traffic->receive_elements = elements;
        break;
    case OP_ALLGATHER:
        for (int to = 0; to < ranks; to++) traffic->sent[to] = share;
        traffic->send_elements = share;
        receive_from_all(traffic, share, ranks, true);
        break;
    default:
        share_out(splits, share, ranks, traffic->sent, traffic->send_at);
        traffic->send_elements = total(traffic->sent, ranks);
        receive_from_all(traffic, traffic->sent[rank], ranks, op != OP_REDUCESCATTER);
    }
}
