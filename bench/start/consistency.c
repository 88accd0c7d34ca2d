// Compares the ranks; see consistency.h.
#include "consistency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls/backend.h"
#include "elements/fnv1a.h"
#include "elements/kernels.h"
#include "protocol/protocol.h"

enum { SHOWN_SIZE = 256 };

// ---- hashes: like FNV-1a, eight bytes at a time; they are compared only between ranks --------------

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (; size > 0; bytes += 8, size -= size < 8 ? size : 8) {
        uint64_t word = 0;
        memcpy(&word, bytes, size < 8 ? size : 8);
        hash = fnv1a_add(hash, word);
        hash ^= hash >> 32;
    }
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return hash_bytes(hash, text, strlen(text) + 1);
}

// Of the program's own file.
static uint64_t hash_of_binary(void) {
    uint64_t hash = FNV1A_START;
    char piece[1 << 14];
    FILE *file = fopen("/proc/self/exe", "rb");
    for (size_t got; file != NULL && (got = fread(piece, 1, sizeof piece, file)) > 0;) {
        hash = hash_bytes(hash, piece, got);
    }
    if (file != NULL) fclose(file);
    return hash;
}

static uint64_t hash_of_candidates(void) {
    uint64_t hash = FNV1A_START;
    for (int i = 0; i < candidate_count(); i++) {
        const struct candidate *candidate = &backend->candidates[i];
        hash = hash_text(hash, candidate->name);
        hash = hash_bytes(hash, &candidate->accumulates_fp32, sizeof candidate->accumulates_fp32);
        hash = hash_bytes(hash, candidate->ompi_algorithms, sizeof candidate->ompi_algorithms);
        hash = hash_text(hash_text(hash, candidate->ompi_component), candidate->mpich_algorithm);
    }
    return hash;
}

static uint64_t hash_of_options(int argc, char **argv) {
    uint64_t hash = FNV1A_START;
    for (int i = 1; i < argc; i++) hash = hash_text(hash, argv[i]);
    return hash;
}

// ---- the odd rank -----------------------------------------------------------------------------------

// A most frequent value; rank 0's if it is one.
static uint64_t usual_value(const struct identity identities[], int count, enum trait trait) {
    uint64_t usual = 0;
    int most = 0;
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int j = 0; j < count; j++) same += identities[j].traits[trait] == identities[i].traits[trait];
        if (same > most) most = same, usual = identities[i].traits[trait];
    }
    return usual;
}

int consistency_find_odd_rank(const struct identity identities[], int count, enum trait *trait) {
    for (*trait = 0; *trait < TRAITS; (*trait)++) {
        uint64_t usual = usual_value(identities, count, *trait);
        for (int rank = 0; rank < count; rank++) {
            if (identities[rank].traits[*trait] != usual) return rank;
        }
    }
    return -1;
}

// ---- the message ------------------------------------------------------------------------------------

// Describes the trait of this rank that differs.
static void show_trait(enum trait trait, int argc, char **argv, char shown[SHOWN_SIZE]) {
    memset(shown, 0, SHOWN_SIZE);
    switch (trait) {
    case TRAIT_PROTOCOL: snprintf(shown, SHOWN_SIZE, "protocol %d", PROTOCOL_VERSION); return;
    case TRAIT_BINARY:
        if (readlink("/proc/self/exe", shown, SHOWN_SIZE - 1) < 0) snprintf(shown, SHOWN_SIZE, "?");
        return;
    case TRAIT_CANDIDATES: snprintf(shown, SHOWN_SIZE, "%d of them", candidate_count()); return;
    default: break;
    }
    for (int i = 1; i < argc; i++) {
        size_t used = strlen(shown);
        snprintf(shown + used, SHOWN_SIZE - used, "%s%s", i > 1 ? " " : "", argv[i]);
    }
}

static void write_reason(int odd_rank, enum trait trait, const char *shown, char reason[], size_t size) {
    static const char *const descriptions[TRAITS] = {
        [TRAIT_PROTOCOL] = "has another protocol version than",
        [TRAIT_BINARY] = "runs another binary than",
        [TRAIT_CANDIDATES] = "has other candidates than",
        [TRAIT_OPTIONS] = "has other options than",
    };
    snprintf(reason, size,
             "rank %d %s the other ranks (%s); start one bench with the same options everywhere", odd_rank,
             descriptions[trait], shown);
}

// ---- processors: only once all ranks run one binary ---------------------------------------------------

int consistency_find_other_isa(const char isas[][ISA_SIZE], int count) {
    for (int rank = 1; rank < count; rank++) {
        if (strcmp(isas[rank], isas[0]) != 0) return rank;
    }
    return -1;
}

static int check_isas(MPI_Comm comm, int size, char reason[], size_t reason_size) {
    char mine[ISA_SIZE] = "", (*all)[ISA_SIZE] = malloc((size_t)size * sizeof *all);
    if (all == NULL) {
        snprintf(reason, reason_size, "out of memory");
        return -1;
    }
    snprintf(mine, sizeof mine, "%s", kernels_best()->isa);
    MPI_Allgather(mine, ISA_SIZE, MPI_CHAR, all, ISA_SIZE, MPI_CHAR, comm);
    int other = consistency_find_other_isa((const char(*)[ISA_SIZE])all, size);
    if (other >= 0) {
        snprintf(
            reason, reason_size,
            "the processor of rank %d runs kernels for %s, that of rank 0 for %s; start all ranks on nodes "
            "with the same processors",
            other, all[other], all[0]);
    }
    free(all);
    return other >= 0 ? -1 : 0;
}

int consistency_check(MPI_Comm comm, int argc, char **argv, char reason[], size_t reason_size) {
    struct identity mine = {.traits = {
                                [TRAIT_PROTOCOL] = PROTOCOL_VERSION,
                                [TRAIT_BINARY] = hash_of_binary(),
                                [TRAIT_CANDIDATES] = hash_of_candidates(),
                                [TRAIT_OPTIONS] = hash_of_options(argc, argv),
                            }};
    int rank, size;
    char shown[SHOWN_SIZE];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    struct identity *all = malloc((size_t)size * sizeof *all);
    if (all == NULL) {
        snprintf(reason, reason_size, "out of memory");
        return -1;
    }
    MPI_Allgather(&mine, TRAITS, MPI_UINT64_T, all, TRAITS, MPI_UINT64_T, comm);
    enum trait trait;
    int odd_rank = consistency_find_odd_rank(all, size, &trait);
    free(all);
    if (odd_rank < 0) return check_isas(comm, size, reason, reason_size);
    if (rank == odd_rank) show_trait(trait, argc, argv, shown);
    MPI_Bcast(shown, SHOWN_SIZE, MPI_CHAR, odd_rank, comm);
    write_reason(odd_rank, trait, shown, reason, reason_size);
    return -1;
}
