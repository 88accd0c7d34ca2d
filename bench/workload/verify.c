// Checks GEMMs and collectives; see verify.h.
#include "workload/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- GEMMs --------------------------------------------------------------------------------------

// Whole numbers from 1 to 997, so that no product or sum here reaches 2^53.
static double weight(size_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9u;
    return (double)(1 + (z >> 20) % 997);
}

// out[rows] += matrix * in[columns]; `transposed`: stored as [columns, rows].
static void multiply_vector(const float *matrix, bool transposed, size_t rows, size_t columns,
                            const double *in, double *out) {
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < columns; j++) {
            sum += (double)matrix[transposed ? j * rows + i : i * columns + j] * in[j];
        }
        out[i] += sum;
    }
}

// Whether the GEMM's result, and what others add to it, is what it should be; false without memory, too.
static bool gemm_is_right(const struct program *program, const struct gemm *gemm) {
    double *vector = malloc(gemm->n * sizeof *vector), *expected = calloc(gemm->m, sizeof *expected);
    double *found = calloc(gemm->m, sizeof *found);
    bool right = vector != NULL && expected != NULL && found != NULL;
    for (size_t j = 0; right && j < gemm->n; j++) vector[j] = weight(j);
    for (size_t i = 0; right && i < program->gemm_count; i++) {
        const struct gemm *one = &program->gemms[i];
        if (one->c != gemm->c) continue;
        double *between = calloc(one->k, sizeof *between);
        right = between != NULL;
        if (!right) break;
        multiply_vector(one->b, one->trans_b, one->k, one->n, vector, between);
        multiply_vector(one->a, one->trans_a, one->m, one->k, between, expected);
        free(between);
    }
    if (right) {
        multiply_vector(gemm->c, false, gemm->m, gemm->n, vector, found);
        right = memcmp(found, expected, gemm->m * sizeof *found) == 0;
    }
    free(vector);
    free(expected);
    free(found);
    return right;
}

// ---- collectives --------------------------------------------------------------------------------

static void reference_all_to_all(const struct collective *collective, int ranks, float *out, MPI_Comm comm) {
    int send[MAX_RANKS], receive[MAX_RANKS], from[MAX_RANKS], to[MAX_RANKS], sent = 0, received = 0;
    for (int peer = 0; peer < ranks; peer++) {
        from[peer] = sent;
        to[peer] = received;
        sent += send[peer] = (int)collective->send[peer];
        received += receive[peer] = (int)collective->receive[peer];
    }
    MPI_Alltoallv(collective->in, send, from, MPI_FLOAT, out, receive, to, MPI_FLOAT, comm);
}

static void reference(const struct collective *collective, int ranks, float *out, MPI_Comm comm) {
    int count = (int)collective->elements;
    switch (collective->kind) {
    case ALLREDUCE: MPI_Allreduce(collective->in, out, count, MPI_FLOAT, MPI_SUM, comm); break;
    case ALL_GATHER: MPI_Allgather(collective->in, count, MPI_FLOAT, out, count, MPI_FLOAT, comm); break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(collective->in, out, count, MPI_FLOAT, MPI_SUM, comm);
        break;
    case ALL_TO_ALL: reference_all_to_all(collective, ranks, out, comm); break;
    case COLLECTIVE_KINDS: break;
    }
}

// ---- public -------------------------------------------------------------------------------------

int verify(const struct program *program, MPI_Comm comm, char first[PROGRAM_REASON]) {
    int wrong = 0;
    size_t longest = 1;
    for (size_t i = 0; i < program->gemm_count; i++) {
        if (gemm_is_right(program, &program->gemms[i])) continue;
        if (wrong++ == 0) snprintf(first, PROGRAM_REASON, "GEMM %zu (%s)", i, program->gemms[i].name);
    }
    for (size_t i = 0; i < program->collective_count; i++) {
        if (program->collectives[i].out_elements > longest) longest = program->collectives[i].out_elements;
    }
    float *out = malloc(longest * sizeof *out);
    int well = out != NULL, all_well;
    MPI_Allreduce(&well, &all_well, 1, MPI_INT, MPI_MIN, comm);
    for (size_t i = 0; all_well && i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        reference(collective, program->ranks, out, comm);
        if (memcmp(out, collective->out, collective->out_elements * sizeof *out) == 0) continue;
        if (wrong++ == 0) snprintf(first, PROGRAM_REASON, "collective %zu (%s)", i, collective->name);
    }
    free(out);
    return all_well ? wrong : -1;
}
