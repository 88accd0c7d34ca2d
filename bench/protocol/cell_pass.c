// All races of a plan in one order; see cell_pass.h.
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

enum { SHARE_OF_ALL = 8 }; // of the memory there is, that open races may take

struct seat {
    struct race *race;
    struct contender *contender;
};

struct races {
    struct harness *harness;
    struct group *group;
    const struct tune_plan *plan;
    FILE *out;
    struct race **of;   // of each request
    size_t first, end;  // those that are open
    struct seat *seats; // of the pass's entrants
    struct pass pass;
};

// ---- which races are open -------------------------------------------------------------------------

// What an open race holds of the host's memory on all ranks. Each has its own stamps, and in the end all
// ranks'.
static size_t host_bytes(const struct races *races, size_t index) {
    const struct request *request = &races->plan->cells[index];
    size_t ranks = (size_t)races->group->size;
    size_t stamps = race_most_contenders(request) * races->plan->samples * sizeof(struct stamp);
    size_t bytes = ranks * (1 + ranks) * stamps;
    for (size_t rank = 0; rank < ranks; rank++) bytes += race_bytes(request, (int)rank, (int)ranks);
    return bytes;
}

static void close_one(struct races *races, size_t index) {
    race_close(races->of[index]);
    free(races->of[index]);
    races->of[index] = NULL;
}

// Whether the race of a request is open, or cannot be; false: there is no room beside the others.
static bool open_one(struct races *races, size_t index) {
    struct race *race = races->of[index];
    *race = (struct race){.harness = races->harness,
                          .group = races->group,
                          .request = &races->plan->cells[index],
                          .since_ns = clock_ns()};
    return race_open(race) || index == races->first;
}

// Collective. Opens as many as there is room for, from `first` on. -1: see group_failure.
static int open_some(struct races *races) {
    uint64_t room = machine_memory_bytes("") / SHARE_OF_ALL;
    uint64_t taken = 0;
    if (!group_agree(races->group, &room)) return -1;
    for (races->end = races->first; races->end < races->plan->count; races->end++) {
        taken += host_bytes(races, races->end);
        if (taken > room && races->end > races->first) return 0;
        pass_tell_progress(&races->pass);
        races->of[races->end] = malloc(sizeof **races->of);
        if (group_min(races->group, races->of[races->end] != NULL) == 0) {
            group_fail(races->group, "out of memory");
            return -1;
        }
        if (open_one(races, races->end)) continue;
        close_one(races, races->end);
        break;
    }
    return group_failure(races->group) == NULL ? 0 : -1;
}

static void close_all(struct races *races) {
    for (size_t i = races->end; i > races->first; i--) close_one(races, i - 1);
    free(races->seats);
    races->seats = NULL;
    pass_close(&races->pass);
}

// ---- who is timed -----------------------------------------------------------------------------------

static int admit_all(struct races *races) {
    for (size_t i = races->first; i < races->end; i++) {
        struct race *race = races->of[i];
        for (int of = 0; of < race->count; of++) {
            struct contender *contender = &race->contenders[of];
            pass_tell_progress(&races->pass);
            if (!contender->out_of_race && race_admit(race, contender) != 0) return -1;
        }
    }
    return 0;
}

static bool drops_out_somewhere(const struct races *races, const struct candidate *candidate) {
    for (size_t i = races->first; i < races->end; i++) {
        const struct race *race = races->of[i];
        for (int of = 1; of < race->count; of++) {
            if (race->contenders[of].candidate == candidate && race->contenders[of].out_of_race) return true;
        }
    }
    return false;
}

// Prepares those once more who were refused another call. Who is refused now is counted.
static int prepare_again(struct races *races, size_t *refused) {
    *refused = 0;
    for (size_t i = races->first; i < races->end; i++) {
        struct race *race = races->of[i];
        for (int of = 1; of < race->count; of++) {
            struct contender *contender = &race->contenders[of];
            if (contender->out_of_race || !drops_out_somewhere(races, contender->candidate)) continue;
            if (race_prepare(race, contender) != 0) return -1;
            *refused += contender->out_of_race;
        }
    }
    return 0;
}

// Who was refused a call may have nothing left to do others with, such as a communicator; and so may those
// that were ready, where one is refused now.
static int admit_again(struct races *races) {
    size_t refused = 1;
    while (refused > 0) {
        if (prepare_again(races, &refused) != 0) return -1;
    }
    return 0;
}

// The probe is timed where anybody is.
static bool is_timed(const struct race *race, int index) {
    bool anybody = false;
    for (int i = 1; i < race->count; i++) anybody = anybody || !race->contenders[i].out_of_race;
    return anybody && !race->contenders[index].out_of_race;
}

static int take_seats(struct races *races) {
    size_t count = 0, most = 0;
    for (size_t i = races->first; i < races->end; i++) most += (size_t)races->of[i]->count;
    races->seats = calloc(most + 1, sizeof *races->seats);
    for (size_t i = races->first; races->seats != NULL && i < races->end; i++) {
        struct race *race = races->of[i];
        for (int of = 0; of < race->count; of++) {
            if (is_timed(race, of)) races->seats[count++] = (struct seat){race, &race->contenders[of]};
        }
    }
    bool complete = races->seats != NULL && pass_open(&races->pass, count) == 0;
    for (size_t i = 0; complete && i < count; i++) {
        races->pass.entrants[i].op = races->seats[i].race->request->id;
    }
    if (group_min(races->group, complete) != 0) return 0;
    group_fail(races->group, "out of memory");
    return -1;
}

static int call_one(void *of, size_t index, struct stamp *stamp, bool *is_right) {
    const struct races *races = of;
    struct race *race = races->seats[index].race;
    struct contender *contender = races->seats[index].contender;
    size_t shift = race_next_shift(race);
    race_step(race, PHASE_TIMED, contender);
    if (contender->out_of_race) return 0; // on all ranks alike
    if (race_call(race, contender, shift, stamp) != 0) return -1;
    *is_right = contender->out_of_race || race_results_are_right(race, contender, shift);
    return 0;
}

// ---- answers ------------------------------------------------------------------------------------------

static void tell_none(const struct races *races, const struct race *race, const struct contender *contender,
                      const char *reason) {
    fprintf(races->out, "none id=%llu strategy=%s fusion=%s reason=%s\n",
            (unsigned long long)race->request->id, contender->candidate->name,
            fusion_names[race->request->shape.fusion], reason);
}

static void tell(void *of, size_t index, const struct reduced *reduced) {
    struct races *races = of;
    struct race *race = races->seats[index].race;
    const struct contender *contender = races->seats[index].contender;
    const struct entrant *entrant = &races->pass.entrants[index];
    if (contender->candidate == NULL) { // the first of its race
        race->copy_us = contender->out_of_race ? 0 : reduced->time_us.median;
        return;
    }
    if (contender->out_of_race) { // since it was timed
        tell_none(races, race, contender, contender->reason);
        return;
    }
    if (entrant->wrong_anywhere > 0) {
        char reason[REASON_SIZE];
        snprintf(reason, sizeof reason, "wrong result in %u calls, over all ranks", entrant->wrong_anywhere);
        tell_none(races, race, contender, reason);
        return;
    }
    struct call call = cell_call(&race->cell, 0);
    double least_us =
        fmax(races->harness->roundtrip_us, backend->link_us(races->group, contender->candidate, &call));
    struct result result = {.candidate = contender->candidate,
                            .time_us = reduced->time_us,
                            .skew_us = reduced->skew_us,
                            .bound_us = fmax(race->copy_us, least_us),
                            .floor_us = contender->floor_us,
                            .calls = backend->slots(race->place),
                            .bits = NO_BITS};
    protocol_write_row(races->out, races->harness, race->request, &result);
    fprintf(races->out, " fusion=%s", fusion_names[race->request->shape.fusion]);
    pass_write_fields(races->out, entrant, reduced);
    const char *place = plugins_place(contender->candidate);
    if (place != NULL) fprintf(races->out, " place=%s", place);
    fputc('\n', races->out);
}

static void tell_who_is_out(const struct races *races) {
    for (size_t i = races->first; i < races->end; i++) {
        const struct race *race = races->of[i];
        for (int of = 1; of < race->count; of++) {
            const struct contender *contender = &race->contenders[of];
            if (contender->out_of_race) tell_none(races, race, contender, contender->reason);
        }
    }
}

// ---- the pass -----------------------------------------------------------------------------------------

// Whose turn comes later is not known before; at most, all who are asked for.
static size_t most_seats_from(const struct races *races, size_t first) {
    size_t seats = 0;
    for (size_t i = first; i < races->plan->count; i++) {
        seats += race_most_contenders(&races->plan->cells[i]);
    }
    return seats;
}

static int run_some(struct races *races) {
    if (open_some(races) != 0 || admit_all(races) != 0 || admit_again(races) != 0) return -1;
    if (take_seats(races) != 0) return -1;
    pass_expect(&races->pass, most_seats_from(races, races->end));
    if (races->group->rank == 0) tell_who_is_out(races);
    if (races->pass.count > 0 && pass_run(&races->pass, clock_ns()) != 0) return -1;
    close_all(races);
    races->first = races->end;
    return 0;
}

static int run_all(struct races *races) {
    races->of = calloc(races->plan->count, sizeof(struct race *));
    if (group_min(races->group, races->of != NULL) == 0) {
        group_fail(races->group, "out of memory");
        return -1;
    }
    pass_expect(&races->pass, most_seats_from(races, 0));
    while (races->first < races->plan->count) {
        if (run_some(races) != 0) return -1;
    }
    if (races->group->rank == 0) pass_write_cost(races->out, &races->pass.cost);
    free(races->of);
    return 0;
}

int races_run(struct group *group, const struct tune_plan *plan, FILE *out) {
    struct harness harness;
    struct races races = {.harness = &harness, .group = group, .plan = plan, .out = out};
    races.pass =
        (struct pass){.group = group, .plan = plan, .out = out, .of = &races, .call = call_one, .tell = tell};
    if (harness_open(&harness, group, NULL) != 0) return -1;
    watch_rest(PHASE_PASS);
    blame_work(NULL);
    if (run_all(&races) != 0) return -1;
    blame_work("end");
    harness_close(&harness);
    blame_work(NULL);
    return 0;
}
