// Checks GEMMs and collectives; see verify.h.
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "multiply.h"

// The elements as floats: themselves, or in *room, which the caller frees. NULL: out of memory.
static const float *floats_of(enum dtype dtype, const void *elements, size_t count, float **room) {
    *room = NULL;
    if (dtype == DTYPE_FLOAT32) return elements;
    *room = malloc((count + 1) * sizeof **room);
    if (*room != NULL) elements_widen(dtype, elements, *room, count);
    return *room;
}

// ---- GEMMs --------------------------------------------------------------------------------------

// Whole numbers from 1 to 997, so that no product or sum here reaches 2^53.
static double weight(size_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9u;
    return (double)(1 + (z >> 20) % 997);
}

// out[rows] += matrix * in[columns]; `transposed`: stored as [columns, rows]. False: out of memory.
static bool multiply_vector(enum dtype dtype, const void *elements, bool transposed, size_t rows,
                            size_t columns, const double *in, double *out) {
    float *room;
    const float *matrix = floats_of(dtype, elements, rows * columns, &room);
    if (matrix == NULL) return false;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < columns; j++) {
            sum += (double)matrix[transposed ? j * rows + i : i * columns + j] * in[j];
        }
        out[i] += sum;
    }
    free(room);
    return true;
}

// Whether the GEMM's result, with what other GEMMs add to it, is right; also false if out of memory.
static bool gemm_is_right(const struct program *program, const struct gemm *gemm) {
    double *vector = malloc(gemm->n * sizeof *vector), *expected = calloc(gemm->m, sizeof *expected);
    double *found = calloc(gemm->m, sizeof *found);
    bool right = vector != NULL && expected != NULL && found != NULL;
    for (size_t j = 0; right && j < gemm->n; j++) vector[j] = weight(j);
    for (size_t i = 0; right && i < program->gemm_count; i++) {
        const struct gemm *one = &program->gemms[i];
        if (one->c != gemm->c) continue;
        double *between = calloc(one->k, sizeof *between);
        right = between != NULL &&
                multiply_vector(one->dtype, one->b, one->trans_b, one->k, one->n, vector, between) &&
                multiply_vector(one->dtype, one->a, one->trans_a, one->m, one->k, between, expected);
        free(between);
    }
    right = right && multiply_vector(gemm->dtype, gemm->c, false, gemm->m, gemm->n, vector, found) &&
            memcmp(found, expected, gemm->m * sizeof *found) == 0;
    free(vector);
    free(expected);
    free(found);
    return right;
}

// ---- collectives --------------------------------------------------------------------------------

static void reference_all_to_all(const struct collective *collective, int ranks, const float *in, float *out,
                                 MPI_Comm comm) {
    int send[MAX_NODE_RANKS], receive[MAX_NODE_RANKS], from[MAX_NODE_RANKS], to[MAX_NODE_RANKS], sent = 0,
                                                                                                 received = 0;
    for (int peer = 0; peer < ranks; peer++) {
        from[peer] = sent;
        to[peer] = received;
        sent += send[peer] = (int)collective->send[peer];
        received += receive[peer] = (int)collective->receive[peer];
    }
    MPI_Alltoallv(in, send, from, MPI_FLOAT, out, receive, to, MPI_FLOAT, comm);
}

static void reference(const struct collective *collective, int ranks, const float *in, float *out,
                      MPI_Comm comm) {
    int count = (int)collective->elements;
    switch (collective->kind) {
    case ALLREDUCE: MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm); break;
    case ALL_GATHER: MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, comm); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, comm); break;
    case ALL_TO_ALL: reference_all_to_all(collective, ranks, in, out, comm); break;
    case COLLECTIVE_KINDS: break;
    }
}

// Collective. 1: every element is right; 0: some are not; -1: a rank is out of memory.
static int collective_is_right(const struct collective *collective, int ranks, MPI_Comm comm) {
    float *in_room, *out_room;
    const float *in = floats_of(collective->dtype, collective->in, collective->in_elements, &in_room);
    const float *out = floats_of(collective->dtype, collective->out, collective->out_elements, &out_room);
    float *expected = malloc((collective->out_elements + 1) * sizeof *expected);
    int well = in != NULL && out != NULL && expected != NULL, all_well, is_right = -1;
    MPI_Allreduce(&well, &all_well, 1, MPI_INT, MPI_MIN, comm);
    if (all_well) {
        reference(collective, ranks, in, expected, comm);
        is_right = memcmp(expected, out, collective->out_elements * sizeof *out) == 0;
    }
    free(in_room);
    free(out_room);
    free(expected);
    return is_right;
}

// ---- public -------------------------------------------------------------------------------------

int verify(const struct program *program, MPI_Comm comm, char first[PROGRAM_REASON]) {
    int wrong = 0;
    for (size_t i = 0; i < program->gemm_count; i++) {
        if (gemm_is_right(program, &program->gemms[i])) continue;
        if (wrong++ == 0) snprintf(first, PROGRAM_REASON, "GEMM %zu (%s)", i, program->gemms[i].name);
    }
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        int is_right = collective_is_right(collective, program->ranks, comm);
        if (is_right < 0) return -1;
        if (is_right) continue;
        if (wrong++ == 0) snprintf(first, PROGRAM_REASON, "collective %zu (%s)", i, collective->name);
    }
    return wrong;
}
