// One cell and its candidates; see timed_cell.h.
#include "timed_cell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/cell_check.h"
#include "plugin_loader/plugins.h"
#include "ranks/fault_report.h"
#include "ranks/watch.h"

static const double CORRECT_ULP = 0.5; // the largest error of a correctly rounded sum

void timed_cell_drop(struct timed_series *series, const char *reason) {
    if (series->is_dropped) return;
    series->is_dropped = true;
    snprintf(series->reason, sizeof series->reason, "%s", reason);
}

static const char *name_of(const struct timed_series *series) {
    return series->candidate != NULL ? series->candidate->name : "";
}

void timed_cell_step(const struct timed_cell *timed, enum phase phase, const struct timed_series *series) {
    timed->harness->at_work = name_of(series);
    watch_step(phase, name_of(series));
}

int timed_cell_check_time(struct timed_cell *timed) {
    if (timed->request->left_us <= 0 || timed->is_late) return 0;
    uint64_t is_late = (double)(clock_ns() - timed->since_ns) / 1000 >= timed->request->left_us;
    if (!group_agree(timed->group, &is_late)) return -1;
    timed->is_late = is_late != 0;
    return 0;
}

// ---- one call -----------------------------------------------------------------------------------

int timed_cell_call(struct timed_cell *timed, struct timed_series *series, size_t data_set,
                    struct stamp *stamp) {
    char reason[REASON_SIZE] = "";
    fault_work(plugins_work(series->candidate));
    int status = backend->sample(timed->buffers, series->candidate, series->state, data_set, stamp, reason);
    fault_work(NULL);
    if (reason[0] != '\0') timed_cell_drop(series, reason);
    return status;
}

size_t timed_cell_next_data_set(struct timed_cell *timed) {
    return timed->calls++ % timed->cell.data_sets;
}

// ---- verification before timing -----------------------------------------------------------------

static bool ranks_agree(struct timed_cell *timed, uint64_t hash) {
    uint64_t first = hash;
    group_broadcast(timed->group, 0, &first, sizeof first);
    return group_min(timed->group, first == hash) != 0;
}

// Whether its results must have the same bits on all ranks and in all calls.
static bool repeats_bits(const struct timed_series *series) {
    return series->candidate->accumulates_fp32 && !series->candidate->bits_may_vary;
}

static bool ranks_share_result(const struct timed_cell *timed) {
    return timed->request->shape.op == OP_ALLREDUCE || timed->request->shape.op == OP_BROADCAST;
}

// Adds the bits of one more result to those of the series, as long as all ranks have the same.
static void take_bits(struct timed_cell *timed, struct timed_series *series, size_t data_set, uint64_t bits) {
    if (data_set > 0 && series->bits == NO_BITS) return; // the same on all ranks
    bool same = !ranks_share_result(timed) || ranks_agree(timed, bits);
    if (!ranks_share_result(timed)) { // combined over the ranks
        bits = group_sum(timed->group, bits * (2 * (uint64_t)timed->group->rank + 1));
    }
    series->bits = same ? (series->bits * 31 + bits) | 1 : NO_BITS;
}

// The result of a call that is verified. If all ranks have the same, each compares a part of it.
struct verified {
    size_t data_set;
    enum sum_rounding rounding;
    bool is_same;
    uint64_t hash, bits;
};

// Whether what passes the check of a rounding passes that of another one.
static bool is_as_strict(enum sum_rounding passed, enum sum_rounding needed) {
    return passed == needed || passed == SUM_FP32 || needed == SUM_NATIVE;
}

static const struct right_result *known_result(const struct timed_cell *timed,
                                               const struct verified *result) {
    const struct right_result *right = timed->right[result->data_set];
    for (int i = 0; i < timed->right_count[result->data_set]; i++) {
        if (right[i].hash == result->hash && is_as_strict(right[i].rounding, result->rounding))
            return &right[i];
    }
    return NULL;
}

// Whether a slot's results were complete when the call ended.
static bool is_in_time(struct timed_cell *timed, int slot, char what[], size_t what_size) {
    if (backend->is_unchanged(timed->buffers, slot)) return true;
    snprintf(what, what_size, "wrong result: it changes after the call is over");
    return false;
}

// The part of the result that this rank compares. If there are more than two ranks, rank 0 compares nothing:
// the bits take it about as long.
static struct cell_part compared_part(const struct timed_cell *timed, const struct verified *result) {
    int rank = timed->group->rank, size = timed->group->size;
    if (!result->is_same || timed->request->shape.op != OP_ALLREDUCE) return cell_part_of(&timed->cell, 0, 1);
    if (size <= 2) return cell_part_of(&timed->cell, rank, size);
    return rank == 0 ? (struct cell_part){0} : cell_part_of(&timed->cell, rank - 1, size - 1);
}

// Notes an error of sums that a switch added, in units in the last place.
static void note_error(struct timed_cell *timed, double error) {
    timed->group->switch_error = fmax(timed->group->switch_error, error);
}

// Fetches and compares a result. If it is the same on all ranks, rank 0 fetches all of it, and computes its
// bits for all ranks. -1: see group_failure.
static int compare(struct timed_cell *timed, struct verified *result, bool *is_right, char what[],
                   size_t what_size) {
    struct cell_part part = compared_part(timed, result);
    bool has_bits = !result->is_same || timed->group->rank == 0;
    struct cell_part fetched = has_bits ? cell_part_of(&timed->cell, 0, 1) : part;
    if (backend->fetch(timed->buffers, 0, fetched) != 0) return -1;
    *is_right = is_in_time(timed, 0, what, what_size) &&
                cell_check_part(&timed->cell, result->data_set, part, result->rounding, what, what_size);
    if (*is_right && result->rounding == SUM_FAITHFUL)
        note_error(timed, cell_sum_error(&timed->cell, result->data_set, part));
    if (has_bits) result->bits = cell_bits(&timed->cell, timed->group->kernels->hash);
    return 0;
}

// Collective. Whether the result of the last call is right on all ranks. Strategies often agree in every bit:
// a result with the hash of one that passed an equally strict comparison is right without another one. -1:
// see group_failure.
static int result_passes(struct timed_cell *timed, struct verified *result, bool *passes, char what[],
                         size_t what_size) {
    const struct right_result *known = known_result(timed, result);
    bool is_right;
    if (known != NULL) {
        result->bits = known->bits;
        if (result->rounding == SUM_FAITHFUL && known->rounding == SUM_FP32) note_error(timed, CORRECT_ULP);
        is_right = is_in_time(timed, 0, what, what_size);
    } else if (compare(timed, result, &is_right, what, what_size) != 0) {
        return -1;
    }
    *passes = group_all_right(timed->group, is_right, what, what_size);
    if (result->is_same) group_broadcast(timed->group, 0, &result->bits, sizeof result->bits);
    if (*passes && known == NULL) {
        timed->right[result->data_set][timed->right_count[result->data_set]++] =
            (struct right_result){.hash = result->hash, .bits = result->bits, .rounding = result->rounding};
    }
    return 0;
}

static int verify_call(struct timed_cell *timed, struct timed_series *series, size_t data_set,
                       double *took_ns) {
    struct stamp stamp;
    char what[REASON_SIZE] = "";
    timed_cell_step(timed, PHASE_WARM_UP, series);
    if (backend->poison(timed->buffers) != 0) return -1;
    if (timed_cell_call(timed, series, data_set, &stamp) != 0) return -1;
    *took_ns = (double)(stamp.end_ns - stamp.start_ns);
    if (series->candidate == NULL || series->is_dropped) return 0;
    struct verified result = {.data_set = data_set, .rounding = candidate_rounding(series->candidate)};
    result.hash = series->hashes[data_set] = backend->hash(timed->buffers, 0);
    result.is_same = ranks_share_result(timed) && ranks_agree(timed, result.hash);
    bool passes;
    if (result_passes(timed, &result, &passes, what, sizeof what) != 0) return -1;
    if (!passes) {
        timed_cell_drop(series, what);
    } else if (repeats_bits(series) && ranks_share_result(timed) && !result.is_same) {
        timed_cell_drop(series, "ranks differ in the bits of the result");
    } else {
        take_bits(timed, series, data_set, result.bits);
    }
    return 0;
}

// Runs every data set once, compared with the reference; these calls are also the warm-up.
static int verify(struct timed_cell *timed, struct timed_series *series) {
    double took_ns = 0, least_ns = 1e18;
    for (size_t data_set = 0; data_set < timed->cell.data_sets && !series->is_dropped; data_set++) {
        if (timed_cell_check_time(timed) != 0) return -1;
        if (timed->is_late) return 0;
        if (verify_call(timed, series, data_set, &took_ns) != 0) return -1;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    series->estimate_ns = group_max(timed->group, least_ns);
    return 0;
}

// ---- sampling -----------------------------------------------------------------------------------

static bool slot_is_right(struct timed_cell *timed, struct timed_series *series, size_t data_set, int slot) {
    if (backend->hash(timed->buffers, slot) == series->hashes[data_set]) return true;
    char what[REASON_SIZE];
    if (repeats_bits(series)) return false;
    timed->group->control->of[timed->group->rank].burst.varied++;
    return backend->fetch(timed->buffers, slot, cell_part_of(&timed->cell, 0, 1)) == 0 &&
           is_in_time(timed, slot, what, sizeof what) &&
           cell_check(&timed->cell, data_set, candidate_rounding(series->candidate), what, sizeof what);
}

bool timed_cell_results_are_right(struct timed_cell *timed, struct timed_series *series, size_t data_set) {
    if (series->candidate == NULL) return true;
    bool right = true;
    for (int slot = 0; slot < backend->slots(timed->buffers); slot++) {
        right =
            slot_is_right(timed, series, (data_set + (size_t)slot) % timed->cell.data_sets, slot) && right;
    }
    return right;
}

// ---- series ---------------------------------------------------------------------------------

static void add_series(struct timed_cell *timed, int index) {
    struct harness *harness = timed->harness;
    struct timed_series *series = &timed->series[timed->count++];
    const struct candidate *candidate = &backend->candidates[index];
    struct call call = cell_call(&timed->cell, 0);
    series->candidate = candidate;
    series->state = harness->states[index];
    const char *refusal = harness_refusal(harness, index, &timed->request->shape, &call);
    if (refusal != NULL) timed_cell_drop(series, refusal);
}

static bool allocate_samples(struct timed_cell *timed) {
    size_t most = timed->request->max_samples;
    bool complete = true;
    for (int i = 0; i < timed->count && timed->group->rank == 0; i++) {
        struct timed_series *series = &timed->series[i];
        series->times_us = malloc(most * sizeof *series->times_us);
        series->skews_us = malloc(most * sizeof *series->skews_us);
        complete = complete && series->times_us && series->skews_us;
    }
    return complete;
}

size_t timed_cell_most_series(const struct request *request) {
    size_t count = 1;
    for (int i = 0; i < candidate_count(); i++) count += request->wanted[i];
    return count;
}

size_t timed_cell_bytes(const struct request *request, int rank, int ranks) {
    size_t samples = 2 * timed_cell_most_series(request) * request->max_samples * sizeof(double);
    return sizeof(struct timed_cell) + cell_bytes(&request->shape, rank, ranks) +
           backend->buffer_bytes(&request->shape) + (rank == 0 ? samples : 0);
}

bool timed_cell_open(struct timed_cell *timed) {
    struct group *group = timed->group;
    const struct request *request = timed->request;
    char reason[REASON_SIZE] = "out of memory";
    bool complete =
        shape_refusal(&request->shape) == NULL && cell_open_in(timed->memory, &timed->cell, &request->shape,
                                                               group->rank, group->size, request->seed) == 0;
    timed->count = 1;
    for (int i = 0; i < candidate_count(); i++) {
        if (request->wanted[i]) add_series(timed, i);
    }
    complete = allocate_samples(timed) && complete;
    if (group_all_right(group, complete, reason, sizeof reason)) {
        complete = backend->open_buffers(group, &timed->cell, request->mode, &timed->buffers, reason) == 0;
        complete = group_all_right(group, complete, reason, sizeof reason);
    } else {
        complete = false;
    }
    for (int i = 0; i < timed->count && !complete; i++) timed_cell_drop(&timed->series[i], reason);
    return complete;
}

int timed_cell_prepare(struct timed_cell *timed, struct timed_series *series) {
    char reason[REASON_SIZE];
    const struct strategy *strategy = series->candidate ? series->candidate->strategy : NULL;
    struct call call = backend->call(timed->buffers, series->candidate, 0, 0);
    timed_cell_step(timed, PHASE_SET_UP, series);
    if (strategy == NULL || strategy->prepare == NULL) return 0;
    fault_work(plugins_work(series->candidate));
    if (strategy->prepare(series->state, &call, reason) != 0) timed_cell_drop(series, reason);
    fault_work(NULL);
    return group_failure(timed->group) == NULL ? 0 : -1;
}

int timed_cell_admit(struct timed_cell *timed, struct timed_series *series) {
    if (timed_cell_prepare(timed, series) != 0) return -1;
    if (series->is_dropped) return 0;
    if (verify(timed, series) != 0) return -1;
    if (series->is_dropped || series->candidate == NULL || timed->is_late) return 0;
    char reason[REASON_SIZE] = "";
    int status = backend->floor(timed->buffers, series->candidate, series->state, &series->floor_us, reason);
    if (reason[0] != '\0') timed_cell_drop(series, reason);
    return status;
}

void timed_cell_close(struct timed_cell *timed) {
    for (int i = 0; i < timed->count; i++) {
        free(timed->series[i].times_us);
        free(timed->series[i].skews_us);
    }
    if (timed->buffers != NULL) backend->close_buffers(timed->buffers);
    cell_close(&timed->cell);
}
