// The trial; see trial.h.
#include "trial.h"
#include "host/group_mpi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "blame.h"
#include "cell.h"
#include "held.h"
#include "plugins.h"
#include "pool.h"

enum {
    ROUNDS = 3,      // of init-run-fini; what grows from the second to the third may be a leak
    MORE_ROUNDS = 2, // then it has to go on growing
    CALLS = 3,       // of one shape
    LARGEST_BYTES = 4 << 20,
    CANARY = 0xc3,
    OVERWRITTEN = 0xa5,
    LATE_MS = 2, // until a late write is looked for
};

// ---- buffers between unmapped pages -------------------------------------------------------------

struct fence {
    unsigned char *map, *data;
    size_t map_bytes, inner_bytes, bytes;
    int guard; // its place in the watch
};

static size_t in_pages(size_t bytes) {
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

// `bytes` that end, or begin, at an unmapped page, as far as the alignment allows.
static int fence_open(struct fence *fence, size_t bytes, size_t alignment, bool at_end, int guard) {
    *fence = (struct fence){.bytes = bytes, .inner_bytes = in_pages(bytes + 1), .guard = guard};
    fence->map_bytes = fence->inner_bytes + 2 * PAGE_BYTES;
    void *map = mmap(NULL, fence->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return -1;
    fence->map = map;
    unsigned char *inner = fence->map + PAGE_BYTES;
    if (mprotect(inner, fence->inner_bytes, PROT_READ | PROT_WRITE) != 0) return -1;
    memset(inner, CANARY, fence->inner_bytes);
    size_t gap = at_end ? (fence->inner_bytes - bytes) / alignment * alignment : 0;
    fence->data = inner + gap;
    blame_guard(guard, fence->map, inner);
    blame_guard(guard + 1, inner + fence->inner_bytes, fence->map + fence->map_bytes);
    return 0;
}

static bool fence_is_whole(const struct fence *fence) {
    const unsigned char *inner = fence->map + PAGE_BYTES, *end = inner + fence->inner_bytes;
    for (const unsigned char *at = inner; at < fence->data; at++) {
        if (*at != CANARY) return false;
    }
    for (const unsigned char *at = fence->data + fence->bytes; at < end; at++) {
        if (*at != CANARY) return false;
    }
    return true;
}

static void fence_close(struct fence *fence) {
    blame_guard(fence->guard, NULL, NULL);
    blame_guard(fence->guard + 1, NULL, NULL);
    if (fence->map != NULL) munmap(fence->map, fence->map_bytes);
    *fence = (struct fence){0};
}

// ---- one candidate ------------------------------------------------------------------------------

struct trial {
    struct group *group;
    const struct tune_plan *plan;
    struct pool pools[DTYPES];
    void *states[MAX_CANDIDATES];
    char reasons[MAX_CANDIDATES][REASON_SIZE]; // why it failed; "" so far
    bool wanted[MAX_CANDIDATES];
    int round;
};

static void fail_candidate(struct trial *trial, int index, const char *reason) {
    if (trial->reasons[index][0] == '\0') snprintf(trial->reasons[index], REASON_SIZE, "%s", reason);
}

// What one rank has against a candidate, on all ranks.
static void share_reason(struct trial *trial, int index) {
    int bad = trial->reasons[index][0] == '\0' ? INT32_MAX : trial->group->rank, first;
    MPI_Allreduce(&bad, &first, 1, MPI_INT, MPI_MIN, group_comm(trial->group));
    if (first != INT32_MAX)
        MPI_Bcast(trial->reasons[index], REASON_SIZE, MPI_CHAR, first, group_comm(trial->group));
}

// One shape with its buffers.
struct probe {
    struct call call;
    struct traffic traffic;
    struct fence send, receive;
    void *plan;
    bool in_place;
};

static size_t send_bytes(const struct probe *probe) {
    const struct call *call = &probe->call;
    return (call->traffic ? call->traffic->send_elements : call_elements(call)) *
           dtype_sizes_bytes[call->dtype];
}

static size_t receive_bytes(const struct probe *probe) {
    const struct call *call = &probe->call;
    return (call->traffic ? call->traffic->receive_elements : call_elements(call)) *
           dtype_sizes_bytes[call->dtype];
}

static void place_buffers(struct probe *probe, int rank) {
    struct call *call = &probe->call;
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    call->input = probe->in_place ? probe->receive.data : probe->send.data;
    call->out = probe->receive.data;
    if (!probe->in_place || call->traffic == NULL) return;
    if (call->op == OP_ALLGATHER)
        call->input = probe->receive.data + call->traffic->receive_at[rank] * element_bytes;
    if (call->op == OP_REDUCESCATTER)
        call->out = probe->receive.data + call->traffic->send_at[rank] * element_bytes;
}

static int open_probe(struct trial *trial, struct probe *probe, const struct shape *shape, bool in_place) {
    struct group *group = trial->group;
    *probe = (struct probe){.in_place = in_place};
    if (shape->op != OP_ALLREDUCE) {
        traffic_of(shape->op, shape->splits, shape->num_tokens * shape->hidden_size, group->rank, group->size,
                   0, &probe->traffic);
    }
    probe->call = (struct call){.op = shape->op,
                                .traffic = shape->op == OP_ALLREDUCE ? NULL : &probe->traffic,
                                .plan = &probe->plan,
                                .dtype = shape->dtype,
                                .num_tokens = shape->num_tokens,
                                .hidden_size = shape->hidden_size};
    bool at_end = trial->round != 1;
    size_t larger = send_bytes(probe) > receive_bytes(probe) ? send_bytes(probe) : receive_bytes(probe);
    size_t room = in_place ? larger : receive_bytes(probe), alignment = dtype_sizes_bytes[shape->dtype];
    if (alignment < 16) alignment = 16; // what vector code may ask for without saying so
    if (fence_open(&probe->send, send_bytes(probe), alignment, at_end, 0) != 0) return -1;
    if (fence_open(&probe->receive, room, alignment, at_end, 2) != 0) return -1;
    place_buffers(probe, group->rank);
    return 0;
}

static bool is_overwritten(const struct probe *probe) {
    for (size_t i = 0; i < probe->receive.bytes; i++) {
        if (probe->receive.data[i] != OVERWRITTEN) return false;
    }
    return true;
}

static int call_once(struct trial *trial, int index, struct probe *probe, size_t shift, const char *work) {
    struct group *group = trial->group;
    const struct pool *pool = &trial->pools[probe->call.dtype];
    const void *input = pool_input(pool, group->rank, shift);
    memset(probe->receive.data, 0xff, probe->receive.bytes);
    memcpy(probe->in_place ? (void *)(uintptr_t)probe->call.input : probe->send.data, input,
           send_bytes(probe));
    if (!group_barrier(group)) return -1;
    blame_work(work);
    int status = host_candidates[index].strategy->run(trial->states[index], &probe->call);
    blame_work(NULL);
    if (status != 0) return -1;
    if (!pool_is_right(pool, &probe->call, group->rank, shift)) {
        fail_candidate(trial, index, probe->in_place ? "wrong result in place" : "wrong result");
    }
    memset(probe->receive.data, OVERWRITTEN, probe->receive.bytes);
    nanosleep(&(struct timespec){.tv_nsec = LATE_MS * 1000000}, NULL);
    if (!is_overwritten(probe)) fail_candidate(trial, index, "writes after it has returned");
    if (!probe->in_place && memcmp(probe->send.data, input, send_bytes(probe)) != 0) {
        fail_candidate(trial, index, "changes its input");
    }
    if (!fence_is_whole(&probe->send) || !fence_is_whole(&probe->receive)) {
        fail_candidate(trial, index, "writes beyond a buffer");
    }
    return 0;
}

// ---- sums that are rounded ------------------------------------------------------------------------

// Whether all ranks have these bits. Collective.
static bool has_same_bits(struct group *group, const void *data, size_t bytes) {
    uint64_t mine[2], all[2];
    mine[0] = group->kernels->hash(data, bytes);
    mine[1] = ~mine[0];
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_MAX, group_comm(group));
    return all[0] == ~all[1];
}

// Checks what a call left against the float64 sums of its cell, as near as the candidate says it rounds.
static void check_rounding(struct trial *trial, int index, const struct probe *probe, struct cell *cell,
                           size_t shift) {
    bool fp32 = host_candidates[index].accumulates_fp32;
    char what[REASON_SIZE / 2], reason[REASON_SIZE];
    memcpy(cell->out, probe->call.out, cell->out_bytes);
    bool is_same =
        !fp32 || cell->shape.op != OP_ALLREDUCE || has_same_bits(trial->group, cell->out, cell->out_bytes);
    if (!cell_check(cell, shift, fp32, what, sizeof what)) {
        snprintf(reason, sizeof reason, "%s%s", what, fp32 ? ", for sums in fp32" : "");
        fail_candidate(trial, index, reason);
    }
    if (!is_same) fail_candidate(trial, index, "its sums in fp32 have other bits on another rank");
}

// Calls with data whose sums have to be rounded: exact sums do not tell how.
static int call_with_rounding(struct trial *trial, int index, struct probe *probe, const char *work) {
    struct cell cell;
    const struct call *of = &probe->call;
    struct shape shape = {
        .op = of->op, .dtype = of->dtype, .num_tokens = of->num_tokens, .hidden_size = of->hidden_size};
    int ready = cell_open(&cell, &shape, trial->group->rank, trial->group->size, 1) == 0, all, status = 0;
    MPI_Allreduce(&ready, &all, 1, MPI_INT, MPI_MIN, group_comm(trial->group));
    if (!all) fail_candidate(trial, index, "out of memory for its trial");
    for (size_t shift = 0; all && shift < cell.shifts && status == 0; shift++) {
        struct call call = cell_call(&cell, shift);
        memcpy(probe->in_place ? (void *)(uintptr_t)of->input : probe->send.data, call.input,
               send_bytes(probe));
        if (!group_barrier(trial->group)) status = -1;
        blame_work(work);
        if (status == 0) status = host_candidates[index].strategy->run(trial->states[index], of);
        blame_work(NULL);
        if (status == 0) check_rounding(trial, index, probe, &cell, shift);
    }
    cell_close(&cell);
    nanosleep(&(struct timespec){.tv_nsec = LATE_MS * 1000000}, NULL); // the buffers are about to go
    return status;
}

// ---- epilogues ------------------------------------------------------------------------------------

// Calls with the epilogue of a shape, on buffers of the cell's own.
static int try_fused(struct trial *trial, int index, const struct shape *shape) {
    struct cell cell;
    void *plan = NULL;
    char work[80], what[REASON_SIZE];
    bool fp32 = host_candidates[index].accumulates_fp32;
    int ready = cell_open(&cell, shape, trial->group->rank, trial->group->size, 1) == 0, all, status = 0;
    snprintf(work, sizeof work, "strategy %s", host_candidates[index].name);
    MPI_Allreduce(&ready, &all, 1, MPI_INT, MPI_MIN, group_comm(trial->group));
    if (!all) fail_candidate(trial, index, "out of memory for its trial");
    for (size_t shift = 0; all && shift < cell.shifts && status == 0; shift++) {
        struct call call = cell_call(&cell, shift);
        call.plan = &plan;
        cell_poison(&cell);
        if (!group_barrier(trial->group)) status = -1;
        blame_work(work);
        if (status == 0) status = host_candidates[index].strategy->run(trial->states[index], &call);
        blame_work(NULL);
        if (status == 0 && !cell_check(&cell, shift, fp32, what, sizeof what))
            fail_candidate(trial, index, what);
    }
    if (status == 0) plugins_release(&host_candidates[index], plan);
    cell_close(&cell);
    return status;
}

// ---- all calls of a candidate -----------------------------------------------------------------------

static int try_shape(struct trial *trial, int index, const struct shape *shape, bool in_place) {
    struct probe probe;
    char work[80];
    int status = 0, ready, all;
    snprintf(work, sizeof work, "strategy %s", host_candidates[index].name);
    ready = open_probe(trial, &probe, shape, in_place) == 0;
    MPI_Allreduce(&ready, &all, 1, MPI_INT, MPI_MIN, group_comm(trial->group));
    for (size_t shift = 0; all && shift < CALLS && status == 0; shift++) {
        status = call_once(trial, index, &probe, shift, work);
    }
    bool has_sums = shape->op == OP_ALLREDUCE || shape->op == OP_REDUCESCATTER;
    if (status == 0) share_reason(trial, index); // what is wrong on any rank ends it
    bool is_right = trial->reasons[index][0] == '\0';
    if (all && status == 0 && has_sums && is_right) status = call_with_rounding(trial, index, &probe, work);
    if (status == 0) plugins_release(&host_candidates[index], probe.plan);
    fence_close(&probe.send);
    fence_close(&probe.receive);
    return status;
}

// Whether the candidate is tried with this cell of the plan; those of one op and type differ in size alone.
static bool is_tried(struct trial *trial, int index, const struct request *request) {
    const struct shape *shape = &request->shape;
    void *no_plan = NULL;
    struct call call = {.op = shape->op,
                        .plan = &no_plan,
                        .dtype = shape->dtype,
                        .num_tokens = shape->num_tokens,
                        .hidden_size = shape->hidden_size};
    return request->wanted[index] && candidate_does(&host_candidates[index], shape->op) &&
           call_bytes(&call) <= LARGEST_BYTES &&
           shape_refusal_of_ranks(&(struct shape){.op = shape->op,
                                                  .splits = shape->splits,
                                                  .num_tokens = shape->num_tokens,
                                                  .hidden_size = shape->hidden_size},
                                  trial->group->size) == NULL &&
           plugins_refusal(&host_candidates[index], trial->group, &call) == NULL;
}

// Whether it is tried with the epilogue of a cell, too.
static bool is_tried_fused(struct trial *trial, int index, const struct shape *shape) {
    void *no_plan = NULL;
    struct call call = {.op = shape->op,
                        .plan = &no_plan,
                        .dtype = shape->dtype,
                        .fusion = shape->fusion,
                        .num_tokens = shape->num_tokens,
                        .hidden_size = shape->hidden_size};
    return shape->fusion != FUSION_NONE && plugins_takes_place(&host_candidates[index], false) &&
           shape_refusal(shape) == NULL &&
           plugins_refusal(&host_candidates[index], trial->group, &call) == NULL;
}

static int try_candidate(struct trial *trial, int index) {
    for (size_t i = 0; i < trial->plan->count; i++) {
        const struct request *request = &trial->plan->cells[i];
        if (!is_tried(trial, index, request)) continue;
        if (is_tried_fused(trial, index, &request->shape)) {
            if (try_fused(trial, index, &request->shape) != 0) return -1;
            share_reason(trial, index);
            if (trial->reasons[index][0] != '\0') return 0;
        }
        for (int in_place = 0; in_place < 2; in_place++) {
            if (!plugins_takes_place(&host_candidates[index], in_place)) continue;
            if (in_place && (request->shape.op == OP_ALLTOALL || request->shape.op == OP_ALLTOALLV)) continue;
            if (try_shape(trial, index, &request->shape, in_place) != 0) return -1;
            share_reason(trial, index);
            if (trial->reasons[index][0] != '\0') return 0;
        }
    }
    return 0;
}

// ---- rounds of init-run-fini --------------------------------------------------------------------

static int open_states(struct trial *trial, bool open[MAX_CANDIDATES]) {
    for (int i = 0; i < host_candidate_count; i++) {
        char work[80], reason[REASON_SIZE] = "";
        const struct candidate *candidate = &host_candidates[i];
        open[i] = false;
        if (!trial->wanted[i] || trial->reasons[i][0] != '\0') continue;
        snprintf(work, sizeof work, "strategy %s", candidate->name);
        blame_work(work);
        open[i] = candidate->strategy->setup(candidate, trial->group, &trial->states[i], reason) == 0;
        blame_work(NULL);
        if (!open[i]) fail_candidate(trial, i, reason);
    }
    return 0;
}

static int run_round(struct trial *trial) {
    bool open[MAX_CANDIDATES];
    int status = open_states(trial, open);
    for (int i = 0; i < host_candidate_count && status == 0; i++) {
        if (open[i]) status = try_candidate(trial, i);
    }
    for (int i = 0; i < host_candidate_count && status == 0; i++) {
        char work[80];
        if (!open[i]) continue;
        snprintf(work, sizeof work, "strategy %s", host_candidates[i].name);
        blame_work(work);
        host_candidates[i].strategy->teardown(trial->states[i]);
        blame_work(NULL);
    }
    MPI_Barrier(group_comm(trial->group));
    return status;
}

// Names what grew, on all ranks; NULL: nothing did, anywhere.
static const char *growth(struct trial *trial, const struct held *before, const struct held *after) {
    int mine = held_more(before, after), first;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, group_comm(trial->group));
    return first == HELD_KINDS ? NULL : held_names[first];
}

// The rounds. What holds more after each of the last ones than after the one before, leaks.
static int run_rounds(struct trial *trial) {
    time_t since = time(NULL);
    struct held before = {{0}};
    const char *grown = NULL;
    for (trial->round = 0; trial->round < ROUNDS + MORE_ROUNDS; trial->round++) {
        if (run_round(trial) != 0) return -1;
        struct held after = held_now(since);
        if (trial->round >= ROUNDS - 1) {
            grown = growth(trial, &before, &after);
            if (grown == NULL) return 0;
        }
        before = after;
    }
    for (int i = 0; i < host_candidate_count; i++) {
        char reason[REASON_SIZE];
        snprintf(reason, sizeof reason, "its plug-in leaks %s from init to fini", grown);
        if (trial->wanted[i]) fail_candidate(trial, i, reason);
    }
    return 0;
}

static int open_pools(struct trial *trial) {
    int complete = 1, all;
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        complete = complete && pool_open(&trial->pools[dtype], (enum dtype)dtype, LARGEST_BYTES / 2,
                                         trial->group->size, trial->group->kernels) == 0;
    }
    MPI_Allreduce(&complete, &all, 1, MPI_INT, MPI_MIN, group_comm(trial->group));
    return all ? 0 : -1;
}

int trial_run(struct group *group, const struct tune_plan *plan, FILE *out) {
    struct trial *trial = calloc(1, sizeof *trial);
    if (trial == NULL) return -1;
    trial->group = group;
    trial->plan = plan;
    for (int i = 0; i < host_candidate_count; i++) {
        for (size_t cell = 0; cell < plan->count; cell++) {
            trial->wanted[i] = trial->wanted[i] || (host_candidates[i].plugin && plan->cells[cell].wanted[i]);
        }
    }
    int status = open_pools(trial);
    if (status != 0) group_fail(group, "out of memory");
    blame_work(NULL);
    if (status == 0) status = run_rounds(trial);
    for (int i = 0; i < host_candidate_count && status == 0 && group->rank == 0; i++) {
        if (!trial->wanted[i]) continue;
        bool passed = trial->reasons[i][0] == '\0';
        fprintf(out, "trial strategy=%s status=%s%s%s\n", host_candidates[i].name,
                passed ? "passed" : "failed", passed ? "" : " reason=", trial->reasons[i]);
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) pool_close(&trial->pools[dtype]);
    free(trial);
    return status;
}
