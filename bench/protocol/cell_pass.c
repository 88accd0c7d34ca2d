// All cells of a plan in one order; see cell_pass.h.
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

enum { SHARE_OF_ALL = 8 }; // open cells may take this part of the machine's memory

struct seat {
    struct timed_cell *timed;
    struct contender *contender;
};

struct cell_pass {
    struct harness *harness;
    struct group *group;
    const struct pass_plan *plan;
    FILE *out;
    struct timed_cell **of; // of each request
    size_t first, end;      // those that are open
    struct seat *seats;     // of the pass's entrants
    struct pass pass;
};

// ---- open cells -----------------------------------------------------------------------------------

// The host memory of an open cell on all ranks. Each rank has its own stamps, and at the end those of all
// ranks.
static size_t host_bytes(const struct cell_pass *cells, size_t index) {
    const struct request *request = &cells->plan->cells[index];
    size_t ranks = (size_t)cells->group->size;
    size_t stamps = timed_cell_most_contenders(request) * cells->plan->samples * sizeof(struct stamp);
    size_t bytes = ranks * (1 + ranks) * stamps;
    for (size_t rank = 0; rank < ranks; rank++) bytes += timed_cell_bytes(request, (int)rank, (int)ranks);
    return bytes;
}

static void close_one(struct cell_pass *cells, size_t index) {
    timed_cell_close(cells->of[index]);
    free(cells->of[index]);
    cells->of[index] = NULL;
}

// Opens the cell of a request. False: it does not fit beside the others. The first cell stays, even if it
// failed to open.
static bool open_one(struct cell_pass *cells, size_t index) {
    struct timed_cell *timed = cells->of[index];
    *timed = (struct timed_cell){.harness = cells->harness,
                                 .group = cells->group,
                                 .request = &cells->plan->cells[index],
                                 .since_ns = clock_ns()};
    return timed_cell_open(timed) || index == cells->first;
}

// Collective. Opens as many cells as fit, from `first` on. -1: see group_failure.
static int open_some(struct cell_pass *cells) {
    uint64_t room = machine_memory_bytes("") / SHARE_OF_ALL;
    uint64_t taken = 0;
    if (!group_agree(cells->group, &room)) return -1;
    for (cells->end = cells->first; cells->end < cells->plan->count; cells->end++) {
        taken += host_bytes(cells, cells->end);
        if (taken > room && cells->end > cells->first) return 0;
        pass_report_progress(&cells->pass);
        cells->of[cells->end] = malloc(sizeof **cells->of);
        if (group_min(cells->group, cells->of[cells->end] != NULL) == 0) {
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
    free(cells->seats);
    cells->seats = NULL;
    pass_close(&cells->pass);
}

// ---- entrants ---------------------------------------------------------------------------------------

static int admit_all(struct cell_pass *cells) {
    for (size_t i = cells->first; i < cells->end; i++) {
        struct timed_cell *timed = cells->of[i];
        for (int of = 0; of < timed->count; of++) {
            struct contender *contender = &timed->contenders[of];
            pass_report_progress(&cells->pass);
            if (!contender->is_dropped && timed_cell_admit(timed, contender) != 0) return -1;
        }
    }
    return 0;
}

static bool is_dropped_somewhere(const struct cell_pass *cells, const struct candidate *candidate) {
    for (size_t i = cells->first; i < cells->end; i++) {
        const struct timed_cell *timed = cells->of[i];
        for (int of = 1; of < timed->count; of++) {
            if (timed->contenders[of].candidate == candidate && timed->contenders[of].is_dropped) return true;
        }
    }
    return false;
}

// Prepares contenders again that were dropped from another cell, and counts those that are dropped now.
static int prepare_again(struct cell_pass *cells, size_t *refused) {
    *refused = 0;
    for (size_t i = cells->first; i < cells->end; i++) {
        struct timed_cell *timed = cells->of[i];
        for (int of = 1; of < timed->count; of++) {
            struct contender *contender = &timed->contenders[of];
            if (contender->is_dropped || !is_dropped_somewhere(cells, contender->candidate)) continue;
            if (timed_cell_prepare(timed, contender) != 0) return -1;
            *refused += contender->is_dropped;
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
    for (int i = 1; i < timed->count; i++) any = any || !timed->contenders[i].is_dropped;
    return any && !timed->contenders[index].is_dropped;
}

static int take_seats(struct cell_pass *cells) {
    size_t count = 0, most = 0;
    for (size_t i = cells->first; i < cells->end; i++) most += (size_t)cells->of[i]->count;
    cells->seats = calloc(most + 1, sizeof *cells->seats);
    for (size_t i = cells->first; cells->seats != NULL && i < cells->end; i++) {
        struct timed_cell *timed = cells->of[i];
        for (int of = 0; of < timed->count; of++) {
            if (is_timed(timed, of)) cells->seats[count++] = (struct seat){timed, &timed->contenders[of]};
        }
    }
    bool complete = cells->seats != NULL && pass_open(&cells->pass, count) == 0;
    for (size_t i = 0; complete && i < count; i++) {
        cells->pass.entrants[i].op = cells->seats[i].timed->request->id;
    }
    if (group_min(cells->group, complete) != 0) return 0;
    group_fail(cells->group, "out of memory");
    return -1;
}

static int call_one(void *of, size_t index, struct stamp *stamp, bool *is_right) {
    const struct cell_pass *cells = of;
    struct timed_cell *timed = cells->seats[index].timed;
    struct contender *contender = cells->seats[index].contender;
    size_t shift = timed_cell_next_shift(timed);
    timed_cell_step(timed, PHASE_TIMED, contender);
    if (contender->is_dropped) return 0; // the same on all ranks
    if (timed_cell_call(timed, contender, shift, stamp) != 0) return -1;
    *is_right = contender->is_dropped || timed_cell_results_are_right(timed, contender, shift);
    return 0;
}

// ---- answers ------------------------------------------------------------------------------------------

static void report_none(const struct cell_pass *cells, const struct timed_cell *timed,
                        const struct contender *contender, const char *reason) {
    fprintf(cells->out, "none id=%llu strategy=%s fusion=%s reason=%s\n",
            (unsigned long long)timed->request->id, contender->candidate->name,
            fusion_names[timed->request->shape.fusion], reason);
}

static void report(void *of, size_t index, const struct reduced *reduced) {
    struct cell_pass *cells = of;
    struct timed_cell *timed = cells->seats[index].timed;
    const struct contender *contender = cells->seats[index].contender;
    const struct entrant *entrant = &cells->pass.entrants[index];
    if (contender->candidate == NULL) { // the probe, which comes first in its cell
        timed->copy_us = contender->is_dropped ? 0 : reduced->time_us.median;
        return;
    }
    if (contender->is_dropped) { // while it was timed
        report_none(cells, timed, contender, contender->reason);
        return;
    }
    if (entrant->wrong_anywhere > 0) {
        char reason[REASON_SIZE];
        snprintf(reason, sizeof reason, "wrong result in %u calls, over all ranks", entrant->wrong_anywhere);
        report_none(cells, timed, contender, reason);
        return;
    }
    struct call call = cell_call(&timed->cell, 0);
    double least_us =
        fmax(cells->harness->roundtrip_us, backend->link_us(cells->group, contender->candidate, &call));
    struct result result = {.candidate = contender->candidate,
                            .time_us = reduced->time_us,
                            .skew_us = reduced->skew_us,
                            .bound_us = fmax(timed->copy_us, least_us),
                            .floor_us = contender->floor_us,
                            .calls = backend->slots(timed->place),
                            .bits = NO_BITS};
    protocol_write_row(cells->out, cells->harness, timed->request, &result);
    fprintf(cells->out, " fusion=%s", fusion_names[timed->request->shape.fusion]);
    pass_write_fields(cells->out, entrant, reduced);
    const char *place = plugins_place(contender->candidate);
    if (place != NULL) fprintf(cells->out, " place=%s", place);
    fputc('\n', cells->out);
}

static void report_dropped(const struct cell_pass *cells) {
    for (size_t i = cells->first; i < cells->end; i++) {
        const struct timed_cell *timed = cells->of[i];
        for (int of = 1; of < timed->count; of++) {
            const struct contender *contender = &timed->contenders[of];
            if (contender->is_dropped) report_none(cells, timed, contender, contender->reason);
        }
    }
}

// ---- the pass -----------------------------------------------------------------------------------------

// An upper bound of the entrants of later cells: all wanted candidates.
static size_t most_seats_from(const struct cell_pass *cells, size_t first) {
    size_t seats = 0;
    for (size_t i = first; i < cells->plan->count; i++) {
        seats += timed_cell_most_contenders(&cells->plan->cells[i]);
    }
    return seats;
}

static int run_some(struct cell_pass *cells) {
    if (open_some(cells) != 0 || admit_all(cells) != 0 || admit_again(cells) != 0) return -1;
    if (take_seats(cells) != 0) return -1;
    pass_expect(&cells->pass, most_seats_from(cells, cells->end));
    if (cells->group->rank == 0) report_dropped(cells);
    if (cells->pass.count > 0 && pass_run(&cells->pass, clock_ns()) != 0) return -1;
    close_all(cells);
    cells->first = cells->end;
    return 0;
}

static int run_all(struct cell_pass *cells) {
    cells->of = calloc(cells->plan->count, sizeof(struct timed_cell *));
    if (group_min(cells->group, cells->of != NULL) == 0) {
        group_fail(cells->group, "out of memory");
        return -1;
    }
    pass_expect(&cells->pass, most_seats_from(cells, 0));
    while (cells->first < cells->plan->count) {
        if (run_some(cells) != 0) return -1;
    }
    if (cells->group->rank == 0) pass_write_cost(cells->out, &cells->pass.cost);
    free(cells->of);
    return 0;
}

int cell_pass_run(struct group *group, const struct pass_plan *plan, FILE *out) {
    struct harness harness;
    struct cell_pass cells = {.harness = &harness, .group = group, .plan = plan, .out = out};
    cells.pass = (struct pass){
        .group = group, .plan = plan, .out = out, .of = &cells, .call = call_one, .report = report};
    if (harness_open(&harness, group, NULL) != 0) return -1;
    watch_rest(PHASE_PASS);
    fault_work(NULL);
    if (run_all(&cells) != 0) return -1;
    fault_work("end");
    harness_close(&harness);
    fault_work(NULL);
    return 0;
}
