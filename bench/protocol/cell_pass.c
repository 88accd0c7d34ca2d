// All cells of a pass in one order; see cell_pass.h.
#include "cell_pass.h"

#include <math.h>
#include <stdlib.h>

#include "measure/timed_cell.h"
#include "pass.h"
#include "plugin_loader/plugin_limits.h"
#include "protocol.h"
#include "ranks/fault_report.h"
#include "ranks/memory_limit.h"
#include "ranks/watch.h"

enum { SHARE_OF_ALL = 8 }; // open cells may take an eighth of the machine's memory

// The cell of a series of the pass.
struct cell_series {
    struct timed_cell *timed;
    struct timed_series *series;
};

struct cell_pass {
    struct harness *harness;
    struct group *group;
    const struct pass_input *input;
    FILE *out;
    struct timed_cell **timed;  // of each request
    size_t first, end;          // those that are open
    struct cell_series *series; // as many as the pass has, in the same order
    struct pass pass;
};

// ---- open cells -----------------------------------------------------------------------------------

// The host memory of an open cell on all ranks. Each rank has its own stamps, and at the end those of all
// ranks.
static size_t host_bytes(const struct cell_pass *cells, size_t index) {
    const struct request *request = &cells->input->requests[index];
    size_t ranks = (size_t)cells->group->size;
    size_t stamps = timed_cell_most_series(request) * cells->input->samples * sizeof(struct stamp);
    size_t bytes = ranks * (1 + ranks) * stamps;
    for (size_t rank = 0; rank < ranks; rank++) bytes += timed_cell_bytes(request, (int)rank, (int)ranks);
    return bytes;
}

static void close_one(struct cell_pass *cells, size_t index) {
    timed_cell_close(cells->timed[index]);
    free(cells->timed[index]);
    cells->timed[index] = NULL;
}

// Opens the cell of a request. False: it does not fit beside the others. The first cell stays, even if it
// failed to open.
static bool open_one(struct cell_pass *cells, size_t index) {
    struct timed_cell *timed = cells->timed[index];
    *timed = (struct timed_cell){.harness = cells->harness,
                                 .group = cells->group,
                                 .request = &cells->input->requests[index],
                                 .since_ns = clock_ns()};
    return timed_cell_open(timed) || index == cells->first;
}

// Collective. Opens as many cells as fit, from `first` on. -1: see group_failure.
static int open_some(struct cell_pass *cells) {
    uint64_t room = machine_memory_bytes("") / SHARE_OF_ALL;
    uint64_t taken = 0;
    if (!group_agree(cells->group, &room)) return -1;
    for (cells->end = cells->first; cells->end < cells->input->count; cells->end++) {
        taken += host_bytes(cells, cells->end);
        if (taken > room && cells->end > cells->first) return 0;
        pass_report_progress(&cells->pass);
        cells->timed[cells->end] = malloc(sizeof **cells->timed);
        if (group_min(cells->group, cells->timed[cells->end] != NULL) == 0) {
            group_fail(cells->group, "out of memory");
            return -1;
        }
        if (open_one(cells, cells->end)) continue;
        close_one(cells, cells->end);
        break;
    }
    return group_failure(cells->group) == NULL ? 0 : -1;
}

static void close_all(struct cell_pass *cells) {
    for (size_t i = cells->end; i > cells->first; i--) close_one(cells, i - 1);
    free(cells->series);
    cells->series = NULL;
    pass_close(&cells->pass);
}

// ---- series ---------------------------------------------------------------------------------------

static int admit_all(struct cell_pass *cells) {
    for (size_t i = cells->first; i < cells->end; i++) {
        struct timed_cell *timed = cells->timed[i];
        for (int n = 0; n < timed->count; n++) {
            struct timed_series *series = &timed->series[n];
            pass_report_progress(&cells->pass);
            if (!series->is_dropped && timed_cell_admit(timed, series) != 0) return -1;
        }
    }
    return 0;
}

static bool is_dropped_somewhere(const struct cell_pass *cells, const struct candidate *candidate) {
    for (size_t i = cells->first; i < cells->end; i++) {
        const struct timed_cell *timed = cells->timed[i];
        for (int n = 1; n < timed->count; n++) {
            if (timed->series[n].candidate == candidate && timed->series[n].is_dropped) return true;
        }
    }
    return false;
}

// Prepares the candidates again that were dropped in another cell, and counts those that are dropped now.
static int prepare_again(struct cell_pass *cells, size_t *refused) {
    *refused = 0;
    for (size_t i = cells->first; i < cells->end; i++) {
        struct timed_cell *timed = cells->timed[i];
        for (int n = 1; n < timed->count; n++) {
            struct timed_series *series = &timed->series[n];
            if (series->is_dropped || !is_dropped_somewhere(cells, series->candidate)) continue;
            if (timed_cell_prepare(timed, series) != 0) return -1;
            *refused += series->is_dropped;
        }
    }
    return 0;
}

// A candidate that was refused a call may have lost a resource, such as a communicator, that its other calls
// need: prepares these again until no further one is refused.
static int admit_again(struct cell_pass *cells) {
    size_t refused = 1;
    while (refused > 0) {
        if (prepare_again(cells, &refused) != 0) return -1;
    }
    return 0;
}

// The probe is timed if any candidate is.
static bool is_timed(const struct timed_cell *timed, int index) {
    bool any = false;
    for (int i = 1; i < timed->count; i++) any = any || !timed->series[i].is_dropped;
    return any && !timed->series[index].is_dropped;
}

static int list_series(struct cell_pass *cells) {
    size_t count = 0, most = 0;
    for (size_t i = cells->first; i < cells->end; i++) most += (size_t)cells->timed[i]->count;
    cells->series = calloc(most + 1, sizeof *cells->series);
    for (size_t i = cells->first; cells->series != NULL && i < cells->end; i++) {
        struct timed_cell *timed = cells->timed[i];
        for (int n = 0; n < timed->count; n++) {
            if (is_timed(timed, n)) cells->series[count++] = (struct cell_series){timed, &timed->series[n]};
        }
    }
    bool complete = cells->series != NULL && pass_open(&cells->pass, count) == 0;
    for (size_t i = 0; complete && i < count; i++) {
        cells->pass.series[i].op = cells->series[i].timed->request->id;
    }
    if (group_min(cells->group, complete) != 0) return 0;
    group_fail(cells->group, "out of memory");
    return -1;
}

static int call_one(void *context, size_t index, struct stamp *stamp, bool *is_right) {
    const struct cell_pass *cells = context;
    struct timed_cell *timed = cells->series[index].timed;
    struct timed_series *series = cells->series[index].series;
    size_t data_set = timed_cell_next_data_set(timed);
    timed_cell_step(timed, PHASE_TIMED, series);
    if (series->is_dropped) return 0; // the same on all ranks
    if (timed_cell_call(timed, series, data_set, stamp) != 0) return -1;
    *is_right = series->is_dropped || timed_cell_results_are_right(timed, series, data_set);
    return 0;
}

// ---- answers ------------------------------------------------------------------------------------------

static void report_none(const struct cell_pass *cells, const struct timed_cell *timed,
                        const struct timed_series *series, const char *reason) {
    fprintf(cells->out, "none id=%llu strategy=%s fusion=%s reason=%s\n",
            (unsigned long long)timed->request->id, series->candidate->name,
            fusion_names[timed->request->shape.fusion], reason);
}

static void report(void *context, size_t index, const struct reduced *reduced) {
    struct cell_pass *cells = context;
    struct timed_cell *timed = cells->series[index].timed;
    const struct timed_series *series = cells->series[index].series;
    const struct pass_series *calls = &cells->pass.series[index];
    if (series->candidate == NULL) { // the probe, which comes first in its cell
        timed->copy_us = series->is_dropped ? 0 : reduced->measured.time_us.median;
        return;
    }
    if (series->is_dropped) { // while it was timed
        report_none(cells, timed, series, series->reason);
        return;
    }
    if (calls->wrong_anywhere > 0) {
        char reason[REASON_SIZE];
        snprintf(reason, sizeof reason, "wrong result in %u calls, over all ranks", calls->wrong_anywhere);
        report_none(cells, timed, series, reason);
        return;
    }
    struct call call = cell_call(&timed->cell, 0);
    double least_us =
        fmax(harness_latency_us(cells->harness), backend->link_us(cells->group, series->candidate, &call));
    struct result result = {.candidate = series->candidate, .bits = NO_BITS};
    struct measurement measured = reduced->measured;
    measured.bound_us = fmax(timed->copy_us, least_us);
    measured.floor_us = series->floor_us;
    measured.calls = backend->slots(timed->buffers);
    figures_of(&measured, result.figures);
    protocol_write_row(cells->out, cells->harness, timed->request, &result);
    fprintf(cells->out, " fusion=%s", fusion_names[timed->request->shape.fusion]);
    pass_write_fields(cells->out, calls, reduced);
    const char *place = plugins_place(series->candidate);
    if (place != NULL) fprintf(cells->out, " place=%s", place);
    fputc('\n', cells->out);
}

static void report_dropped(const struct cell_pass *cells) {
    for (size_t i = cells->first; i < cells->end; i++) {
        const struct timed_cell *timed = cells->timed[i];
        for (int n = 1; n < timed->count; n++) {
            const struct timed_series *series = &timed->series[n];
            if (series->is_dropped) report_none(cells, timed, series, series->reason);
        }
    }
}

// ---- the pass -----------------------------------------------------------------------------------------

// An upper bound of the series of later cells: all wanted candidates.
static size_t most_series_from(const struct cell_pass *cells, size_t first) {
    size_t series = 0;
    for (size_t i = first; i < cells->input->count; i++) {
        series += timed_cell_most_series(&cells->input->requests[i]);
    }
    return series;
}

static int run_some(struct cell_pass *cells) {
    if (open_some(cells) != 0 || admit_all(cells) != 0 || admit_again(cells) != 0) return -1;
    if (list_series(cells) != 0) return -1;
    pass_expect(&cells->pass, most_series_from(cells, cells->end));
    if (cells->group->rank == 0) report_dropped(cells);
    if (cells->pass.count > 0 && pass_run(&cells->pass, clock_ns()) != 0) return -1;
    close_all(cells);
    cells->first = cells->end;
    return 0;
}

static int run_all(struct cell_pass *cells) {
    cells->timed = calloc(cells->input->count, sizeof(struct timed_cell *));
    if (group_min(cells->group, cells->timed != NULL) == 0) {
        group_fail(cells->group, "out of memory");
        return -1;
    }
    pass_expect(&cells->pass, most_series_from(cells, 0));
    while (cells->first < cells->input->count) {
        if (run_some(cells) != 0) return -1;
    }
    if (cells->group->rank == 0) pass_write_cost(cells->out, &cells->pass.cost);
    free(cells->timed);
    return 0;
}

int cell_pass_run(struct group *group, const struct pass_input *input, FILE *out) {
    struct harness harness;
    struct cell_pass cells = {.harness = &harness, .group = group, .input = input, .out = out};
    cells.pass = (struct pass){
        .group = group, .input = input, .out = out, .context = &cells, .call = call_one, .report = report};
    if (harness_open(&harness, group, NULL) != 0) return -1;
    watch_rest(PHASE_PASS);
    fault_work(NULL);
    if (run_all(&cells) != 0) return -1;
    fault_work("end");
    harness_close(&harness);
    fault_work(NULL);
    return 0;
}
