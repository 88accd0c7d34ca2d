// Order, synchronisation and reduction of a pass; see pass.h.
#include "pass.h"

#include <math.h>
#include <stdlib.h>

#include "elements/random.h"
#include "ranks/fault_report.h"

static const uint64_t REPORT_EVERY_NS = 1000000000;

int pass_open(struct pass *pass, size_t count) {
    pass->count = count;
    pass->series = calloc(count + 1, sizeof *pass->series);
    pass->stamps = calloc(count * pass->input->samples + 1, sizeof *pass->stamps);
    if (pass->series == NULL || pass->stamps == NULL) return -1;
    for (size_t i = 0; i < count; i++) {
        pass->series[i].stamps = pass->stamps + i * pass->input->samples;
    }
    return 0;
}

void pass_expect(struct pass *pass, size_t others) {
    size_t orders = pass->input->sync == SYNC_BOTH ? 2 : 1;
    pass->calls =
        pass->done + (pass->count + others) * (pass->input->warm_up + pass->input->samples) * orders;
}

void pass_close(struct pass *pass) {
    free(pass->series);
    free(pass->stamps);
    pass->series = NULL;
    pass->stamps = NULL;
    pass->count = 0;
}

static double microseconds(struct stamp stamp) {
    return (double)(stamp.end_ns - stamp.start_ns) / 1000;
}

static double elapsed_us(uint64_t since_ns) {
    return (double)(clock_ns() - since_ns) / 1000;
}

// ---- order --------------------------------------------------------------------------------------

static void report_now(struct pass *pass) {
    if (pass->group->rank != 0) return;
    pass->reported_ns = clock_ns();
    fprintf(pass->out, "progress done=%zu of=%zu\n", pass->done, pass->calls);
    fflush(pass->out);
}

void pass_report_progress(struct pass *pass) {
    if (clock_ns() - pass->reported_ns >= REPORT_EVERY_NS) report_now(pass);
}

static int take_call(struct pass *pass, size_t index) {
    struct pass_series *series = &pass->series[index];
    struct stamp unused = {0, 0}, *stamp = &unused;
    bool is_right = true;
    if (series->calls >= pass->input->warm_up) stamp = &series->stamps[series->calls - pass->input->warm_up];
    if (pass->call(pass->context, index, stamp, &is_right) != 0) return -1;
    pass->cost.calls_us += microseconds(*stamp);
    series->calls++;
    series->wrong += !is_right;
    pass->done++;
    pass_report_progress(pass);
    return 0;
}

// All calls of the series from `first` up to `end`, in random order.
static int run_in_random_order(struct pass *pass, size_t first, size_t end, uint32_t *random) {
    size_t each = pass->input->warm_up + pass->input->samples, count = (end - first) * each;
    uint32_t *order = malloc((count + 1) * sizeof *order);
    if (order == NULL) {
        group_fail(pass->group, "out of memory");
        return -1;
    }
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)(first + i / each);
    for (size_t i = count; i > 1; i--) {
        size_t other = random_32(random) % i;
        uint32_t kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
    int status = 0;
    for (size_t i = first; i < end; i++) pass->series[i].calls = 0;
    for (size_t i = 0; status == 0 && i < count; i++) status = take_call(pass, order[i]);
    free(order);
    return status;
}

// ---- reduction ----------------------------------------------------------------------------------

// `all` has the stamps of rank 0, then those of rank 1, and so on, `stride` stamps each. `scratch` has two
// numbers a sample, to which the result points.
static struct reduced reduce(const struct group *group, const struct stamp *all, size_t stride, size_t first,
                             size_t samples, double *scratch) {
    struct reduced reduced = {0};
    int ranks = group->size;
    double means[MAX_RANKS] = {0}, *longest = scratch, *skews = scratch + samples;
    for (size_t i = 0; i < samples; i++) {
        uint64_t earliest = UINT64_MAX, latest = 0;
        longest[i] = 0;
        for (int rank = 0; rank < ranks; rank++) {
            struct stamp stamp = all[(size_t)rank * stride + first + i];
            longest[i] = fmax(longest[i], microseconds(stamp));
            means[rank] += microseconds(stamp) / (double)samples;
            if (stamp.start_ns < earliest) earliest = stamp.start_ns;
            if (stamp.start_ns > latest) latest = stamp.start_ns;
        }
        skews[i] = (double)(latest - earliest) / 1000;
        reduced.mean_of_max_us += longest[i] / (double)samples;
    }
    for (int rank = 0; rank < ranks; rank++) {
        reduced.max_of_means_us = fmax(reduced.max_of_means_us, means[rank]);
        reduced.mean_us += means[rank] / ranks;
    }
    reduced.measured = (struct measurement){.time_us = summarise(longest, samples),
                                            .times_us = longest,
                                            .skews_us = harness_has_skews(group) ? skews : NULL};
    return reduced;
}

static bool gather_wrong(struct pass *pass, size_t first, size_t end) {
    size_t count = end - first, ranks = (size_t)pass->group->size;
    uint32_t *mine = calloc((ranks + 1) * count + 1, sizeof *mine), *all = mine + count;
    if (mine == NULL) {
        group_fail(pass->group, "out of memory");
        return false;
    }
    for (size_t i = 0; i < count; i++) mine[i] = pass->series[first + i].wrong;
    bool gathered = group_gather(pass->group, mine, count * sizeof *mine, all);
    for (size_t i = 0; gathered && i < count; i++) {
        pass->series[first + i].wrong_anywhere = 0;
        for (size_t rank = 0; rank < ranks; rank++)
            pass->series[first + i].wrong_anywhere += all[rank * count + i];
    }
    free(mine);
    return gathered;
}

// Collective: the stamps of series `first` up to `end` of all ranks, for free(). NULL: see group_failure.
static struct stamp *gather(struct pass *pass, size_t first, size_t end) {
    size_t stride = (end - first) * pass->input->samples;
    uint64_t since_ns = clock_ns();
    struct stamp *all = malloc(((size_t)pass->group->size * stride + 1) * sizeof *all);
    if (all == NULL) {
        group_fail(pass->group, "out of memory");
        return NULL;
    }
    fault_work("reduction");
    bool gathered = group_gather(pass->group, pass->series[first].stamps, stride * sizeof *all, all) &&
                    gather_wrong(pass, first, end);
    fault_work(NULL);
    pass->cost.reduce_us += elapsed_us(since_ns);
    if (gathered) return all;
    free(all);
    return NULL;
}

// ---- the two ways to synchronise ----------------------------------------------------------------

static int agree(struct pass *pass) {
    char reason[REASON_SIZE];
    fault_work("agreement");
    int status = pass_input_agree(pass->input, pass->group, reason);
    fault_work(NULL);
    if (status != 0) group_fail(pass->group, reason);
    return status;
}

// One op: its agreement, its calls, its reduction.
static int run_op(struct pass *pass, size_t first, size_t end, uint32_t *random, double *scratch) {
    size_t samples = pass->input->samples;
    if (agree(pass) != 0 || run_in_random_order(pass, first, end, random) != 0) return -1;
    struct stamp *all = gather(pass, first, end);
    for (size_t i = first; all != NULL && i < end; i++) {
        pass->series[i].per_op =
            reduce(pass->group, all, (end - first) * samples, (i - first) * samples, samples, scratch)
                .measured.time_us;
    }
    free(all);
    return all != NULL ? 0 : -1;
}

static int run_per_op(struct pass *pass, uint32_t *random, double *scratch) {
    for (size_t first = 0, end; first < pass->count; first = end) {
        for (end = first; end < pass->count && pass->series[end].op == pass->series[first].op;) end++;
        if (run_op(pass, first, end, random, scratch) != 0) return -1;
    }
    return 0;
}

static void report_all(struct pass *pass, const struct stamp *all, double *scratch) {
    size_t samples = pass->input->samples;
    for (size_t i = 0; i < pass->count; i++) {
        struct reduced reduced =
            reduce(pass->group, all, pass->count * samples, i * samples, samples, scratch);
        pass->report(pass->context, i, &reduced);
    }
}

// Runs the requested orders. With SYNC_OP alone its samples are also those of the rows.
static struct stamp *run_orders(struct pass *pass, uint64_t since_ns, double *scratch) {
    uint32_t random = pass->input->seed * 2654435761u | 1;
    double before_us = pass->cost.calls_us;
    if (pass->input->sync != SYNC_PASS) {
        if (run_per_op(pass, &random, scratch) != 0) return NULL;
        pass->cost.op_total_us += elapsed_us(since_ns);
        pass->cost.op_calls_us += pass->cost.calls_us - before_us;
        pass->cost.calls_us = before_us;
        since_ns = clock_ns();
    }
    if (pass->input->sync != SYNC_OP && run_in_random_order(pass, 0, pass->count, &random) != 0) return NULL;
    struct stamp *all = gather(pass, 0, pass->count);
    if (pass->input->sync != SYNC_OP) pass->cost.total_us += elapsed_us(since_ns);
    return all;
}

int pass_run(struct pass *pass, uint64_t since_ns) {
    double *scratch = malloc(2 * pass->input->samples * sizeof *scratch);
    if (scratch == NULL) {
        group_fail(pass->group, "out of memory");
        return -1;
    }
    pass->reported_ns = clock_ns();
    struct stamp *all = run_orders(pass, since_ns, scratch);
    if (all != NULL) report_now(pass);
    if (all != NULL && pass->group->rank == 0) report_all(pass, all, scratch);
    free(all);
    free(scratch);
    return all != NULL ? 0 : -1;
}

// ---- lines of the protocol ----------------------------------------------------------------------

void pass_write_cost(FILE *out, const struct pass_cost *cost) {
    fprintf(out, "pass total_us=%.1f calls_us=%.1f reduce_us=%.1f op_total_us=%.1f op_calls_us=%.1f\n",
            cost->total_us, cost->calls_us, cost->reduce_us, cost->op_total_us, cost->op_calls_us);
}

void pass_write_fields(FILE *out, const struct pass_series *series, const struct reduced *reduced) {
    fprintf(out, " mean_of_max_us=%.4f max_of_means_us=%.4f mean_us=%.4f op_us=%.4f", reduced->mean_of_max_us,
            reduced->max_of_means_us, reduced->mean_us, series->per_op.median);
}
