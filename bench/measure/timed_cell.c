// One race; see timed_cell.h.
#include "timed_cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/cell_check.h"
#include "plugin_loader/plugins.h"
#include "ranks/fault_report.h"
#include "ranks/watch.h"

void race_drop_out(struct contender *contender, const char *reason) {
    if (contender->out_of_race) return;
    contender->out_of_race = true;
    snprintf(contender->reason, sizeof contender->reason, "%s", reason);
}

static const char *name_of(const struct contender *contender) {
    return contender->candidate != NULL ? contender->candidate->name : "";
}

void race_step(const struct race *race, enum phase phase, const struct contender *contender) {
    race->harness->at_work = name_of(contender);
    watch_step(phase, name_of(contender));
}

int race_look_at_time(struct race *race) {
    if (race->request->left_us <= 0 || race->is_late) return 0;
    uint64_t is_late = (double)(clock_ns() - race->since_ns) / 1000 >= race->request->left_us;
    if (!group_agree(race->group, &is_late)) return -1;
    race->is_late = is_late != 0;
    return 0;
}

// ---- one call -----------------------------------------------------------------------------------

int race_call(struct race *race, struct contender *contender, size_t shift, struct stamp *stamp) {
    char reason[REASON_SIZE] = "";
    blame_work(plugins_work(contender->candidate));
    int status = backend->sample(race->place, contender->candidate, contender->state, shift, stamp, reason);
    blame_work(NULL);
    if (reason[0] != '\0') race_drop_out(contender, reason);
    return status;
}

size_t race_next_shift(struct race *race) {
    return race->calls++ % race->cell.shifts;
}

// ---- verification before timing -----------------------------------------------------------------

static bool ranks_agree(struct race *race, uint64_t hash) {
    uint64_t first = hash;
    group_broadcast(race->group, 0, &first, sizeof first);
    return group_min(race->group, first == hash) != 0;
}

// Whether its results have the same bits on all ranks and in all calls.
static bool repeats_bits(const struct contender *contender) {
    return contender->candidate->accumulates_fp32 && !contender->candidate->bits_may_vary;
}

static bool ranks_share_result(const struct race *race) {
    return race->request->shape.op == OP_ALLREDUCE || race->request->shape.op == OP_BROADCAST;
}

// Takes the bits of one more result into the contender's, as long as all ranks have the same.
static void take_bits(struct race *race, struct contender *contender, size_t shift) {
    uint64_t bits = cell_bits(&race->cell, race->group->kernels->hash);
    if (shift > 0 && contender->bits == NO_BITS) return; // on all ranks alike
    bool same = !ranks_share_result(race) || ranks_agree(race, bits);
    if (!ranks_share_result(race)) { // then it is of all of them together
        bits = group_sum(race->group, bits * (2 * (uint64_t)race->group->rank + 1));
    }
    contender->bits = same ? (contender->bits * 31 + bits) | 1 : NO_BITS;
}

// Compares a result with the reference. Strategies often agree in every bit; what has the hash of a result
// that passed as strict a comparison is right without another.
static bool result_passes(struct race *race, size_t shift, bool fp32, uint64_t hash, char what[],
                          size_t what_size) {
    struct right_result *right = race->right[shift];
    for (int i = 0; i < race->right_count[shift]; i++) {
        if (right[i].hash == hash && (right[i].of_fp32_sums || !fp32)) return true;
    }
    if (!cell_check(&race->cell, shift, fp32, what, what_size)) return false;
    right[race->right_count[shift]++] = (struct right_result){.hash = hash, .of_fp32_sums = fp32};
    return true;
}

// Whether a slot's results, which have been fetched, were there when the call was over.
static bool is_in_time(struct race *race, int slot, char what[], size_t what_size) {
    if (backend->stays(race->place, slot)) return true;
    snprintf(what, what_size, "wrong result: it changes after the call is over");
    return false;
}

static int verify_call(struct race *race, struct contender *contender, size_t shift, double *took_ns) {
    struct stamp stamp;
    char what[REASON_SIZE] = "";
    race_step(race, PHASE_WARM_UP, contender);
    if (backend->poison(race->place) != 0) return -1;
    if (race_call(race, contender, shift, &stamp) != 0) return -1;
    *took_ns = (double)(stamp.end_ns - stamp.start_ns);
    if (contender->candidate == NULL || contender->out_of_race) return 0;
    bool fp32 = contender->candidate->accumulates_fp32;
    if (backend->fetch(race->place, 0) != 0) return -1;
    contender->hashes[shift] = backend->hash(race->place, 0);
    bool right = is_in_time(race, 0, what, sizeof what) &&
                 result_passes(race, shift, fp32, contender->hashes[shift], what, sizeof what);
    if (!group_all_right(race->group, right, what, sizeof what)) {
        race_drop_out(contender, what);
    } else if (repeats_bits(contender) && ranks_share_result(race) &&
               !ranks_agree(race, contender->hashes[shift])) {
        race_drop_out(contender, "ranks differ in the bits of the result");
    } else {
        take_bits(race, contender, shift);
    }
    return 0;
}

// Runs every set of data once, in full view of the reference; these calls warm up too.
static int verify(struct race *race, struct contender *contender) {
    double took_ns = 0, least_ns = 1e18;
    for (size_t shift = 0; shift < race->cell.shifts && !contender->out_of_race; shift++) {
        if (race_look_at_time(race) != 0) return -1;
        if (race->is_late) return 0;
        if (verify_call(race, contender, shift, &took_ns) != 0) return -1;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    contender->estimate_ns = group_max(race->group, least_ns);
    return 0;
}

// ---- sampling -----------------------------------------------------------------------------------

static bool slot_is_right(struct race *race, struct contender *contender, size_t shift, int slot) {
    if (backend->hash(race->place, slot) == contender->hashes[shift]) return true;
    char what[REASON_SIZE];
    if (repeats_bits(contender)) return false;
    race->group->control->varied[race->group->rank]++;
    return backend->fetch(race->place, slot) == 0 && is_in_time(race, slot, what, sizeof what) &&
           cell_check(&race->cell, shift, contender->candidate->accumulates_fp32, what, sizeof what);
}

bool race_results_are_right(struct race *race, struct contender *contender, size_t shift) {
    if (contender->candidate == NULL) return true;
    bool right = true;
    for (int slot = 0; slot < backend->slots(race->place); slot++) {
        right = slot_is_right(race, contender, (shift + (size_t)slot) % race->cell.shifts, slot) && right;
    }
    return right;
}

// ---- who races ----------------------------------------------------------------------------------

static void enter(struct race *race, int index) {
    struct harness *harness = race->harness;
    struct contender *contender = &race->contenders[race->count++];
    const struct candidate *candidate = &backend->candidates[index];
    struct call call = cell_call(&race->cell, 0);
    contender->candidate = candidate;
    contender->state = harness->states[index];
    const char *refusal = harness_refusal(harness, index, &race->request->shape, &call);
    if (refusal != NULL) race_drop_out(contender, refusal);
}

static bool allocate_samples(struct race *race) {
    size_t most = race->request->max_samples;
    bool complete = true;
    for (int i = 0; i < race->count && race->group->rank == 0; i++) {
        struct contender *contender = &race->contenders[i];
        contender->times_us = malloc(most * sizeof *contender->times_us);
        contender->skews_us = malloc(most * sizeof *contender->skews_us);
        complete = complete && contender->times_us && contender->skews_us;
    }
    return complete;
}

size_t race_most_contenders(const struct request *request) {
    size_t count = 1;
    for (int i = 0; i < candidate_count(); i++) count += request->wanted[i];
    return count;
}

size_t race_bytes(const struct request *request, int rank, int ranks) {
    size_t samples = 2 * race_most_contenders(request) * request->max_samples * sizeof(double);
    return sizeof(struct race) + cell_bytes(&request->shape, rank, ranks) +
           backend->place_bytes(&request->shape) + (rank == 0 ? samples : 0);
}

bool race_open(struct race *race) {
    struct group *group = race->group;
    const struct request *request = race->request;
    char reason[REASON_SIZE] = "out of memory";
    bool complete = shape_refusal(&request->shape) == NULL &&
                    cell_open(&race->cell, &request->shape, group->rank, group->size, request->seed) == 0;
    race->count = 1;
    for (int i = 0; i < candidate_count(); i++) {
        if (request->wanted[i]) enter(race, i);
    }
    complete = allocate_samples(race) && complete;
    if (group_all_right(group, complete, reason, sizeof reason)) {
        complete = backend->place(group, &race->cell, request->mode, &race->place, reason) == 0;
        complete = group_all_right(group, complete, reason, sizeof reason);
    } else {
        complete = false;
    }
    for (int i = 0; i < race->count && !complete; i++) race_drop_out(&race->contenders[i], reason);
    return complete;
}

int race_prepare(struct race *race, struct contender *contender) {
    char reason[REASON_SIZE];
    const struct strategy *strategy = contender->candidate ? contender->candidate->strategy : NULL;
    struct call call = backend->call(race->place, contender->candidate, 0, 0);
    race_step(race, PHASE_SET_UP, contender);
    if (strategy == NULL || strategy->prepare == NULL) return 0;
    blame_work(plugins_work(contender->candidate));
    if (strategy->prepare(contender->state, &call, reason) != 0) race_drop_out(contender, reason);
    blame_work(NULL);
    return group_failure(race->group) == NULL ? 0 : -1;
}

int race_admit(struct race *race, struct contender *contender) {
    if (race_prepare(race, contender) != 0) return -1;
    if (contender->out_of_race) return 0;
    if (verify(race, contender) != 0) return -1;
    if (contender->out_of_race || contender->candidate == NULL || race->is_late) return 0;
    char reason[REASON_SIZE] = "";
    int status =
        backend->floor(race->place, contender->candidate, contender->state, &contender->floor_us, reason);
    if (reason[0] != '\0') race_drop_out(contender, reason);
    return status;
}

void race_close(struct race *race) {
    for (int i = 0; i < race->count; i++) {
        free(race->contenders[i].times_us);
        free(race->contenders[i].skews_us);
    }
    if (race->place != NULL) backend->displace(race->place);
    cell_close(&race->cell);
}
