// Thousands of calls of ONESHOT, TWOSHOT and TWOSHOT_DIVIDED in a row, of all sizes, without barriers and
// with random delays of ranks: a slot that is overwritten too early would give a wrong sum. Run under mpirun.
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/backend.h"
#include "elements/element.h"
#include "elements/random.h"
#include "elements/strategy.h"
#include "ranks/group_mpi.h"

enum { CALLS = 6000, LARGEST = 400000, PERIOD = 7 };
static const enum dtype DTYPE = DTYPE_BFLOAT16;

// Elements of call number `call`: mostly small, around the borders of lines and chunks, at times many chunks.
static size_t elements_of(uint32_t *random) {
    static const size_t borders[] = {1,    30,    31,    512,   1023,  1024,  1025,
                                     1026, 16384, 16383, 16385, 65536, 131072};
    uint32_t draw = random_32(random);
    if (draw % 64 == 0) return LARGEST - draw / 64 % 1000;
    size_t border = borders[draw / 64 % (sizeof borders / sizeof *borders)];
    return draw % 4 == 0 ? 1 + draw / 4096 % 1500 : border;
}

// Element `index` of call `call` on a rank is a small integer, so that every sum is exact. It has period
// PERIOD in `call + index`, as the sum over the ranks has: a message is a part of a pattern.
static float value_of(int rank, size_t index) {
    return (float)(((size_t)rank * 5 + index) % PERIOD);
}

static float sum_of(int ranks, size_t index) {
    float sum = 0;
    for (int rank = 0; rank < ranks; rank++) sum += value_of(rank, index);
    return sum;
}

struct patterns {
    uint16_t values[LARGEST + PERIOD], sums[LARGEST + PERIOD];
};

static void make_patterns(struct patterns *patterns, const struct group *group) {
    for (size_t i = 0; i < LARGEST + PERIOD; i++) {
        element_store(DTYPE, patterns->values, i, value_of(group->rank, i));
        element_store(DTYPE, patterns->sums, i, sum_of(group->size, i));
    }
}

static int check(const struct group *group, const char *name, const uint16_t *out, const uint16_t *sums,
                 unsigned call, size_t count) {
    if (memcmp(out, sums, count * sizeof *out) == 0) return 0;
    size_t i = 0;
    while (out[i] == sums[i]) i++;
    fprintf(stderr, "%s, rank %d, call %u of %zu elements: [%zu] is %g, not %g\n", name, group->rank, call,
            count, i, element_value(DTYPE, out, i), element_value(DTYPE, sums, i));
    return -1;
}

// A call that puts the sums of about `count` elements into `sums`: without an epilogue, or, for a strategy
// that needs one, as the residual of tokens that have a residual of 0.
static struct call call_of(const struct group *group, const struct candidate *candidate, size_t count,
                           const uint16_t *input, uint16_t *sums) {
    static const uint16_t zeros[LARGEST];
    static uint16_t norm[LARGEST];
    const char *(*supports)(const struct group *, const struct call *) = candidate->strategy->supports;
    struct call call = {.dtype = DTYPE, .num_tokens = 1, .hidden_size = count, .input = input, .out = sums};
    if (supports == NULL || supports(group, &call) == NULL) return call;
    size_t ranks = (size_t)group->size, tokens = count / 1024;
    call.fusion = FUSION_RESIDUAL_RMS_NORM;
    call.num_tokens = tokens < ranks ? ranks : tokens;
    call.hidden_size = count < call.num_tokens ? 1 : count / call.num_tokens;
    call.residual = call.gamma = zeros;
    call.residual_out = sums;
    call.out = norm;
    call.epsilon = 1;
    return call;
}

static int run_candidate(struct group *group, const struct candidate *candidate,
                         const struct patterns *patterns, uint16_t *input, uint16_t *out) {
    void *state;
    char reason[REASON_SIZE];
    uint32_t shared = 12345, own = 777 + (uint32_t)group->rank;
    int status = candidate->strategy->setup(candidate, group, &state, reason);
    for (unsigned call = 0; status == 0 && call < CALLS; call++) {
        struct call todo = call_of(group, candidate, elements_of(&shared), input, out);
        size_t count = call_elements(&todo);
        memcpy(input, patterns->values + call % PERIOD, count * sizeof *input);
        for (uint32_t spins = random_32(&own) % 8 == 0 ? random_32(&own) % 20000 : 0; spins > 0; spins--) {
            atomic_signal_fence(memory_order_seq_cst);
        }
        group->cache_bytes = call & 1; // outputs past the cache, and not
        status = candidate->strategy->run(state, &todo);
        if (status == 0)
            status = check(group, candidate->name, out, patterns->sums + call % PERIOD, call, count);
    }
    return status;
}

// Whether every result of a strategy is the exact sum, in any order of the ranks.
static bool is_exact(const struct candidate *candidate) {
    return candidate->accumulates_fp32 && candidate_does(candidate, OP_ALLREDUCE);
}

// Whether the bench has the tested strategies.
static bool has_strategies(void) {
    int found = 0;
    for (int i = 0; i < host_candidate_count; i++) {
        const char *name = host_candidates[i].name;
        found += is_exact(&host_candidates[i]) &&
                 (strcmp(name, "ONESHOT") == 0 || strncmp(name, "TWOSHOT", strlen("TWOSHOT")) == 0);
    }
    if (found != 3) fprintf(stderr, "ONESHOT, TWOSHOT or TWOSHOT_DIVIDED does no AllReduce\n");
    return found == 3;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct group group;
    char reason[REASON_SIZE];
    uint16_t *input = malloc(LARGEST * sizeof *input), *out = malloc(LARGEST * sizeof *out);
    struct patterns *patterns = malloc(sizeof *patterns);
    int status = group_open(&group, MPI_COMM_WORLD, 30, reason, sizeof reason);
    make_patterns(patterns, &group);
    if (!has_strategies()) status = -1;
    for (int i = 0; status == 0 && i < host_candidate_count; i++) {
        if (is_exact(&host_candidates[i]))
            status = run_candidate(&group, &host_candidates[i], patterns, input, out);
    }
    if (status != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    free(input);
    free(out);
    free(patterns);
    MPI_Finalize();
    return 0;
}
