// The pass; see host_pass.h.
//
// An allreduce with an epilogue is timed as three series. Fused: the candidate does both. Alone: without the
// epilogue. Separate: the allreduce, and then a loop over its result.
#include "host_pass.h"
#include "calls/cell_check.h"
#include "calls/in_place.h"
#include "ranks/group_mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calls/exact_data.h"
#include "epilogue.h"
#include "outputs.h"
#include "plugin_loader/plugin_limits.h"
#include "plugin_loader/plugin_strategy.h"
#include "protocol/pass.h"
#include "protocol/protocol.h"
#include "ranks/fault_report.h"
#include "ranks/watch.h"

enum {
    PROBES = 3,
    OWN_BELOW = 4 << 20, // bytes: smaller outputs may stay in caches, where the last writer affects times
    SHARED = MAX_CANDIDATES,
    NO_CANDIDATE = -1,
};

enum epilogue_kind { EPILOGUE_NONE, EPILOGUE_FUSED, EPILOGUE_SEPARATE, EPILOGUE_ALONE, EPILOGUE_KINDS };
static const char *const epilogue_names[] = {"none", "fused", "separate", "alone"};

// The candidate and cell of a series of the pass, and how the epilogue is done.
struct host_series {
    size_t cell;
    int candidate;
    enum epilogue_kind kind;
    bool in_place;
    void *plan;
    char work[80];                  // its name, for fault_work()
    uint64_t hashes[MAX_DATA_SETS]; // of right results with an epilogue
};

// One request of the input.
struct op_cell {
    const struct request *request;
    struct traffic traffic;
    struct cell with_epilogue; // set if the request has an epilogue
    int last_fused;            // the plug-in's candidate that wrote the results last; they are poisoned now
    const char *refusal;
    double bound_us;
};

struct host_pass {
    struct harness *harness;
    struct group *group;
    const struct pass_input *input;
    struct op_cell *cells;
    struct host_series *series;
    size_t count;
    struct pass pass; // has as many series as this struct, in the same order
    struct pool pools[DTYPES];
    struct outputs outputs[MAX_CANDIDATES + 1]; // of the largest call
    bool has_plugins;
    size_t largest_bytes, calls;
    FILE *out;
};

// ---- preparation --------------------------------------------------------------------------------

static size_t elements_of(const struct request *request) {
    return request->shape.num_tokens * request->shape.hidden_size;
}

static void open_cell(struct host_pass *host, size_t index) {
    struct op_cell *cell = &host->cells[index];
    struct group *group = host->group;
    cell->request = &host->input->requests[index];
    cell->last_fused = NO_CANDIDATE;
    const struct shape *shape = &cell->request->shape;
    cell->refusal = shape_refusal_of_ranks(shape, group->size);
    if (cell->refusal != NULL) return;
    if (shape->op != OP_ALLREDUCE) {
        traffic_of(shape->op, shape->splits, elements_of(cell->request), group->rank, group->size, 0,
                   &cell->traffic);
    }
    if (shape->fusion != FUSION_NONE &&
        cell_open(&cell->with_epilogue, shape, group->rank, group->size, host->input->seed) != 0)
        cell->refusal = "out of memory";
}

static bool is_of_plugin(int candidate) {
    return host_candidates[candidate].plugin != NULL;
}

static bool is_wanted(const struct host_pass *host, int candidate) {
    for (size_t i = 0; i < host->input->count; i++) {
        if (host->input->requests[i].wanted[candidate]) return true;
    }
    return false;
}

static struct outputs *outputs_of(struct host_pass *host, int candidate) {
    struct outputs *own = &host->outputs[candidate];
    return own->of[0].data != NULL ? own : &host->outputs[SHARED];
}

static bool open_outputs(struct host_pass *host, size_t bytes) {
    bool complete = true;
    for (int i = 0; i < host_candidate_count; i++) {
        host->has_plugins = host->has_plugins || (is_of_plugin(i) && is_wanted(host, i));
    }
    for (int i = 0; i <= SHARED; i++) {
        bool is_own = i < host_candidate_count && is_wanted(host, i) &&
                      (is_of_plugin(i) || (host->has_plugins && bytes <= OWN_BELOW));
        for (int place = 0; place < OUTPUTS && (is_own || i == SHARED); place++) {
            struct output *output = &host->outputs[i].of[place];
            *output = (struct output){.data = aligned_alloc(PAGE_BYTES, bytes), .candidate = i};
            complete = complete && output->data != NULL;
        }
    }
    return complete;
}

static int open_data(struct host_pass *host) {
    size_t elements[DTYPES] = {0};
    for (size_t i = 0; i < host->input->count; i++) {
        const struct shape *shape = &host->input->requests[i].shape;
        size_t count = elements_of(&host->input->requests[i]),
               bytes = count * dtype_sizes_bytes[shape->dtype];
        if (count > elements[shape->dtype]) elements[shape->dtype] = count;
        if (bytes > host->largest_bytes) host->largest_bytes = bytes;
    }
    int complete = 1, all;
    size_t room = (host->largest_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        if (elements[dtype] == 0) continue;
        complete = complete && pool_open(&host->pools[dtype], (enum dtype)dtype, elements[dtype],
                                         host->group->size, host->group->kernels) == 0;
    }
    complete = open_outputs(host, room) && complete;
    host->cells = calloc(host->input->count, sizeof *host->cells);
    complete = complete && host->cells;
    MPI_Allreduce(&complete, &all, 1, MPI_INT, MPI_MIN, group_comm(host->group));
    for (size_t i = 0; all && i < host->input->count; i++) open_cell(host, i);
    return all ? 0 : -1;
}

static void check_cell_for_late_writes(const struct op_cell *op_cell) {
    const struct cell *cell = &op_cell->with_epilogue;
    if (op_cell->last_fused == NO_CANDIDATE) return;
    bool untouched = is_poisoned(cell->out, cell->out_bytes) &&
                     is_poisoned(cell->residual_out, cell->residual_out_bytes) &&
                     is_poisoned(cell->block_scales, cell->block_scales_bytes);
    if (!untouched) exit_for_late_write(op_cell->last_fused);
}

static void check_for_late_writes(struct host_pass *host) {
    for (int i = 0; i < SHARED; i++) {
        for (int place = 0; place < OUTPUTS; place++) output_check(&host->outputs[i].of[place]);
    }
    for (size_t i = 0; host->cells != NULL && i < host->input->count; i++)
        check_cell_for_late_writes(&host->cells[i]);
}

// ---- one call -----------------------------------------------------------------------------------

// Puts the input of an in-place call where the output goes.
static void move_in_place(struct host_pass *host, struct call *call, unsigned char *out) {
    size_t elements = call->traffic ? call->traffic->send_elements : call_elements(call);
    const void *input = call->input;
    call_put_in_place(call, host->group->rank, out);
    memcpy((void *)(uintptr_t)call->input, input, elements * dtype_sizes_bytes[call->dtype]);
}

static bool has_epilogue(const struct host_series *series) {
    return series->kind == EPILOGUE_FUSED || series->kind == EPILOGUE_SEPARATE;
}

static struct call call_of(struct host_pass *host, struct host_series *series, size_t data_set,
                           struct output *output) {
    struct op_cell *cell = &host->cells[series->cell];
    const struct shape *shape = &cell->request->shape;
    if (has_epilogue(series)) {
        struct call call = cell_call(&cell->with_epilogue, data_set % cell->with_epilogue.data_sets);
        call.plan = &series->plan;
        check_cell_for_late_writes(cell);
        cell->last_fused = NO_CANDIDATE;
        cell_poison(&cell->with_epilogue);
        void *behind_sum = call.out;
        if (series->in_place) move_in_place(host, &call, output->data);
        call.out = behind_sum;
        return call;
    }
    struct call call = {.op = shape->op,
                        .traffic = shape->op == OP_ALLREDUCE ? NULL : &cell->traffic,
                        .plan = &series->plan,
                        .dtype = shape->dtype,
                        .num_tokens = shape->num_tokens,
                        .hidden_size = shape->hidden_size,
                        .input =
                            pool_input(&host->pools[shape->dtype], shape->op, host->group->rank, data_set),
                        .out = output->data};
    output_poison(output, call_bytes(&call));
    if (series->in_place) move_in_place(host, &call, output->data);
    return call;
}

// Poisons the results of a plug-in's candidate again after the comparison, to detect late writes.
static void end_call(struct host_pass *host, const struct host_series *series, const struct call *call,
                     struct output *output) {
    struct op_cell *cell = &host->cells[series->cell];
    if (!is_of_plugin(series->candidate)) return;
    if (series->kind == EPILOGUE_FUSED) {
        cell_poison(&cell->with_epilogue);
        cell->last_fused = series->candidate;
    } else {
        output_poison_returned(output, call_bytes(call));
    }
}

static int run_separately(struct host_pass *host, const struct host_series *series, const struct call *call,
                          unsigned char *sum) {
    const struct candidate *candidate = &host_candidates[series->candidate];
    struct call alone = *call;
    struct epilogue epilogue;
    alone.fusion = FUSION_NONE;
    alone.out = sum;
    int status = candidate->strategy->run(host->harness->states[series->candidate], &alone);
    epilogue_begin(&epilogue, host->group->kernels, call, 0);
    epilogue_consume(&epilogue, (const void *const[]){sum}, 1, call_elements(call));
    return status;
}

static bool is_right(struct host_pass *host, struct host_series *series, const struct call *call,
                     size_t data_set) {
    struct op_cell *cell = &host->cells[series->cell];
    if (!has_epilogue(series)) {
        return pool_is_right(&host->pools[call->dtype], call, host->group->rank, data_set);
    }
    char what[REASON_SIZE];
    bool fp32 = series->kind == EPILOGUE_FUSED && host_candidates[series->candidate].accumulates_fp32;
    data_set %= cell->with_epilogue.data_sets;
    uint64_t hash = cell_hash(&cell->with_epilogue, host->group->kernels->hash);
    if (hash == series->hashes[data_set]) return true;
    if (!cell_check(&cell->with_epilogue, data_set, fp32 ? SUM_FP32 : SUM_NATIVE, what, sizeof what))
        return false;
    series->hashes[data_set] = hash;
    return true;
}

static int take_call(void *context, size_t index, struct stamp *stamp, bool *right) {
    struct host_pass *host = context;
    struct host_series *series = &host->series[index];
    struct output *output = outputs_next(outputs_of(host, series->candidate));
    size_t data_set = host->calls++ % POOL_DATA_SETS;
    struct call call = call_of(host, series, data_set, output);
    if (!group_start_together(host->group)) return -1;
    fault_work(series->work); // begins here: the wait for other ranks is not the candidate's fault
    stamp->start_ns = clock_ns();
    int status = series->kind == EPILOGUE_SEPARATE ? run_separately(host, series, &call, output->data)
                                                   : host_candidates[series->candidate].strategy->run(
                                                         host->harness->states[series->candidate], &call);
    stamp->end_ns = clock_ns();
    fault_work(NULL);
    if (status != 0) return -1;
    *right = is_right(host, series, &call, data_set);
    end_call(host, series, &call, output);
    return 0;
}

// ---- series ---------------------------------------------------------------------------------

static const char *refusal_of(struct host_pass *host, size_t cell, int index, enum epilogue_kind kind) {
    const struct candidate *candidate = &host_candidates[index];
    const struct request *request = host->cells[cell].request;
    void *no_plan = NULL;
    // The input is in the cell, and not copied: see is_strided_well in plugin_limits.c.
    bool reads_rows = kind == EPILOGUE_SEPARATE && !plugins_is_in_place(candidate);
    if (host->cells[cell].refusal != NULL) return host->cells[cell].refusal;
    struct call call = {.op = request->shape.op,
                        .traffic = request->shape.op == OP_ALLREDUCE ? NULL : &host->cells[cell].traffic,
                        .plan = reads_rows ? NULL : &no_plan,
                        .dtype = request->shape.dtype,
                        .fusion = kind == EPILOGUE_FUSED ? request->shape.fusion : FUSION_NONE,
                        .num_tokens = request->shape.num_tokens,
                        .hidden_size = request->shape.hidden_size};
    if (!candidate_does(candidate, request->shape.op)) return "does not support this op";
    if (!host->harness->is_set_up[index]) return host->harness->unavailable[index];
    if (candidate->plugin != NULL) return plugins_refusal(candidate, host->group, &call);
    return candidate->strategy->supports(host->group, &call);
}

static void print_none(const struct host_pass *host, FILE *out, size_t cell, int candidate,
                       enum epilogue_kind kind, const char *reason) {
    if (host->group->rank != 0) return;
    fprintf(out, "none id=%zu strategy=%s epilogue=%s reason=%s\n", cell + 1, host_candidates[candidate].name,
            epilogue_names[kind], reason);
}

// Collective. Makes the plan of a plug-in. Not 0: `reason`, the same on all ranks.
static int prepare(struct host_pass *host, struct host_series *series, char reason[REASON_SIZE]) {
    const struct strategy *strategy = host_candidates[series->candidate].strategy;
    if (!is_of_plugin(series->candidate)) return 0;
    struct output *output = outputs_next(outputs_of(host, series->candidate));
    struct call call = call_of(host, series, 0, output);
    if (series->kind == EPILOGUE_SEPARATE) {
        call.fusion = FUSION_NONE;
        call.out = output->data;
    }
    fault_work(series->work);
    int status = strategy->prepare(host->harness->states[series->candidate], &call, reason);
    fault_work(NULL);
    return status;
}

static void add_series(struct host_pass *host, FILE *out, size_t cell, int candidate,
                       enum epilogue_kind kind) {
    char reason[REASON_SIZE];
    const char *refusal = refusal_of(host, cell, candidate, kind);
    if (refusal != NULL) {
        print_none(host, out, cell, candidate, kind, refusal);
        return;
    }
    struct host_series *series = &host->series[host->count];
    *series = (struct host_series){.cell = cell,
                                   .candidate = candidate,
                                   .kind = kind,
                                   .in_place = plugins_is_in_place(&host_candidates[candidate])};
    snprintf(series->work, sizeof series->work, "strategy %s", host_candidates[candidate].name);
    if (prepare(host, series, reason) == 0)
        host->count++;
    else
        print_none(host, out, cell, candidate, kind, reason);
}

static int add_all_series(struct host_pass *host, FILE *out) {
    size_t most = host->input->count * (size_t)host_candidate_count * EPILOGUE_KINDS;
    host->series = calloc(most, sizeof *host->series);
    if (host->series == NULL) return -1;
    for (size_t cell = 0; cell < host->input->count; cell++) {
        bool fused = host->input->requests[cell].shape.fusion != FUSION_NONE;
        for (int i = 0; i < host_candidate_count; i++) {
            if (!host->input->requests[cell].wanted[i]) continue;
            if (!fused) add_series(host, out, cell, i, EPILOGUE_NONE);
            for (int kind = EPILOGUE_FUSED; fused && kind < EPILOGUE_KINDS; kind++) {
                add_series(host, out, cell, i, (enum epilogue_kind)kind);
            }
        }
    }
    if (pass_open(&host->pass, host->count) != 0) return -1;
    pass_expect(&host->pass, 0);
    for (size_t i = 0; i < host->count; i++) host->pass.series[i].op = host->series[i].cell;
    return 0;
}

// Measures the work that every candidate must do at least on this rank: write its output.
static void probe_bound(struct host_pass *host, struct op_cell *cell) {
    if (cell->refusal != NULL) return;
    const struct shape *shape = &cell->request->shape;
    size_t elements = shape->op == OP_ALLREDUCE ? elements_of(cell->request) : cell->traffic.receive_elements;
    double times_us[PROBES];
    for (int i = 0; i < PROBES; i++) {
        uint64_t since_ns = clock_ns();
        memcpy(host->outputs[SHARED].of[0].data,
               pool_input(&host->pools[shape->dtype], shape->op, host->group->rank, (size_t)i),
               elements * dtype_sizes_bytes[shape->dtype]);
        times_us[i] = (double)(clock_ns() - since_ns) / 1000;
    }
    cell->bound_us = fmax(median(times_us, PROBES), harness_latency_us(host->harness));
}

// ---- answers ------------------------------------------------------------------------------------

static void print_row(const struct host_pass *host, size_t index, const struct reduced *reduced) {
    const struct host_series *series = &host->series[index];
    const struct candidate *candidate = &host_candidates[series->candidate];
    const struct request request = {.id = series->cell + 1, .mode = MODE_EAGER};
    struct result result = {.candidate = candidate};
    struct measurement measured = reduced->measured;
    measured.bound_us = host->cells[series->cell].bound_us;
    figures_of(&measured, result.figures);
    protocol_write_row(host->out, host->harness, &request, &result);
    fprintf(host->out, " epilogue=%s", epilogue_names[series->kind]);
    pass_write_fields(host->out, &host->pass.series[index], reduced);
    if (plugins_place(candidate) != NULL) fprintf(host->out, " place=%s", plugins_place(candidate));
    fputc('\n', host->out);
}

static void report(void *context, size_t index, const struct reduced *reduced) {
    const struct host_pass *host = context;
    const struct host_series *series = &host->series[index];
    char reason[REASON_SIZE];
    uint32_t wrong = host->pass.series[index].wrong_anywhere;
    if (wrong == 0) {
        print_row(host, index, reduced);
        return;
    }
    snprintf(reason, sizeof reason, "wrong result in %u calls, over all ranks", wrong);
    print_none(host, host->out, series->cell, series->candidate, series->kind, reason);
}

static int measure(struct host_pass *host) {
    uint64_t since_ns = clock_ns();
    for (size_t i = 0; i < host->input->count; i++) probe_bound(host, &host->cells[i]);
    if (pass_run(&host->pass, since_ns) != 0) return -1;
    if (host->group->rank == 0) pass_write_cost(host->out, &host->pass.cost);
    return 0;
}

// Releases plans and candidates, and checks for late writes before and after fini.
static void close_pass(struct host_pass *host) {
    check_for_late_writes(host);
    for (size_t i = 0; i < host->count; i++) {
        const struct host_series *series = &host->series[i];
        fault_work(series->work);
        if (!plugins_release(&host_candidates[series->candidate], series->plan))
            fault_exit(series->work, "writes beyond its workspace");
    }
    fault_work("end");
    harness_close(host->harness);
    check_for_late_writes(host);
    for (size_t i = 0; host->cells != NULL && i < host->input->count; i++) {
        cell_close(&host->cells[i].with_epilogue);
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) pool_close(&host->pools[dtype]);
    for (int i = 0; i <= SHARED; i++) {
        for (int place = 0; place < OUTPUTS; place++) free(host->outputs[i].of[place].data);
    }
    free(host->cells);
    free(host->series);
    pass_close(&host->pass);
}

int host_pass_run(struct group *group, const struct pass_input *input, FILE *out) {
    struct harness harness;
    struct host_pass host = {.harness = &harness, .group = group, .input = input, .out = out};
    host.pass = (struct pass){
        .group = group, .input = input, .out = out, .context = &host, .call = take_call, .report = report};
    int all, status = harness_open(&harness, group, NULL);
    watch_rest(PHASE_PASS);
    if (status != 0) return status;
    fault_work("start"); // again, since a wait in MPI has no other deadline
    int ready = open_data(&host) == 0 && add_all_series(&host, out) == 0;
    fault_work("start");
    MPI_Allreduce(&ready, &all, 1, MPI_INT, MPI_MIN, group_comm(host.group));
    fault_work(NULL);
    if (!all) group_fail(host.group, "out of memory");
    status = all ? 0 : -1;
    if (status == 0 && host.count > 0) status = measure(&host);
    if (status == 0) close_pass(&host);
    return status;
}
