// Measures cells; see harness.h.
//
// A call is timed like this: all ranks arrive at a barrier, and start at one agreed time where each has a
// core of its own; each notes when it entered and left. The call took the longest that any rank took; the
// skew is how far apart they entered. No two calls in a row have the same data. A result that was compared
// with the reference in full leaves its hash; a timed call counts when its result has that hash, or passes
// the full comparison.
//
// Sampling ends when it has decided: who is clearly slower than the best is sampled no more, and neither is
// who is known precisely enough (request.precision). The budget ends it otherwise.
#include "harness.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins.h"

enum {
    ROUNDTRIPS = 32, // per sample of the probe
    ROUNDTRIP_SAMPLES = 31,
    BURST_NS = 100000,          // calls of one candidate in a row, about so long
    WARM_UP_BELOW_NS = 1000000, // longer calls need no untimed call before a burst
    FEWEST_SAMPLES = 3,         // even when they cost several budgets
    SLOWER_SAMPLES = 5,         // of both, when one is dropped because all of its samples are slower
    SETTLED_EVERY_ROUND = 8,    // up to this one, then in each power of two: sorting costs, too
    OVERDRAFT = 4,              // budgets, until fewer samples than asked for must do
    NO_BITS = 0,
};

// One who is timed: a candidate, or the probe of the physical bound (candidate NULL), which copies input to
// output.
struct contender {
    const struct candidate *candidate;
    void *state;
    bool out_of_race;
    char reason[REASON_SIZE];
    bool settled; // known well enough: sampled no more
    uint64_t hashes[MAX_SHIFTS];
    uint64_t bits; // of all results, the same on all ranks and in all calls; or NO_BITS
    double estimate_ns;
    size_t count, wrong;
    double *times_us, *skews_us; // rank 0
};

// A result that passed the full comparison: its hash, and how strict the comparison was.
struct right_result {
    uint64_t hash;
    bool of_fp32_sums;
};

struct race {
    struct harness *harness;
    struct group *group;
    const struct request *request;
    struct cell cell;
    struct contender contenders[MAX_CANDIDATES + 1];
    int count;
    size_t calls; // so far; decides which data the next call has
    struct right_result right[MAX_SHIFTS][MAX_CANDIDATES];
    int right_count[MAX_SHIFTS];
};

// The texts of the last request; results point into them.
static char last_reasons[MAX_CANDIDATES][REASON_SIZE];

// The first reason counts.
static void drop_out(struct contender *contender, const char *reason) {
    if (contender->out_of_race) return;
    contender->out_of_race = true;
    snprintf(contender->reason, sizeof contender->reason, "%s", reason);
}

static const char *name_of(const struct contender *contender) {
    return contender->candidate != NULL ? contender->candidate->name : "";
}

// ---- one call -----------------------------------------------------------------------------------

// What every way to do it has to do at least: write the output, from what was read.
static void copy_input(const struct call *call) {
    if (call->traffic == NULL) {
        memcpy(call->residual_out ? call->residual_out : call->out, call->input, call_bytes(call));
        return;
    }
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    size_t left = call->traffic->receive_elements * element_bytes, piece;
    size_t most = call->traffic->send_elements * element_bytes;
    for (char *to = call->out; left > 0; left -= piece, to += piece) {
        piece = left < most ? left : most;
        memcpy(to, call->input, piece);
    }
}

static int call_contender(struct contender *contender, const struct call *call) {
    if (contender->candidate == NULL) {
        copy_input(call);
        return 0;
    }
    return contender->candidate->strategy->run(contender->state, call);
}

static int timed_call(struct race *race, struct contender *contender, size_t shift, struct stamp *stamp) {
    struct call call = cell_call(&race->cell, shift);
    if (!group_start_together(race->group)) return -1;
    stamp->start_ns = clock_ns();
    int status = call_contender(contender, &call);
    stamp->end_ns = clock_ns();
    return status;
}

static size_t next_shift(struct race *race) {
    return race->calls++ % race->cell.shifts;
}

// ---- verification before timing -----------------------------------------------------------------

// Whether all ranks are content; else the text of the first that is not, on all ranks.
static bool all_right(struct race *race, bool right, char what[], int what_size) {
    int bad = right ? INT32_MAX : race->group->rank, first_bad;
    MPI_Allreduce(&bad, &first_bad, 1, MPI_INT, MPI_MIN, race->group->comm);
    if (first_bad == INT32_MAX) return true;
    MPI_Bcast(what, what_size, MPI_CHAR, first_bad, race->group->comm);
    return false;
}

static bool ranks_agree(struct race *race, uint64_t hash) {
    uint64_t both[2] = {hash, ~hash}, least[2];
    MPI_Allreduce(both, least, 2, MPI_UINT64_T, MPI_MIN, race->group->comm);
    return least[0] == ~least[1];
}

static bool ranks_share_result(const struct race *race) {
    return race->request->shape.op == OP_ALLREDUCE || race->request->shape.op == OP_BROADCAST;
}

// Takes the bits of one more result into the contender's, as long as all ranks have the same.
static void take_bits(struct race *race, struct contender *contender, size_t shift) {
    uint64_t bits = cell_bits(&race->cell, race->group->kernels->hash), mine;
    if (shift > 0 && contender->bits == NO_BITS) return; // on all ranks alike
    bool same = !ranks_share_result(race) || ranks_agree(race, bits);
    if (!ranks_share_result(race)) { // then it is of all of them together
        mine = bits * (2 * (uint64_t)race->group->rank + 1);
        MPI_Allreduce(&mine, &bits, 1, MPI_UINT64_T, MPI_SUM, race->group->comm);
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

static int verify_call(struct race *race, struct contender *contender, size_t shift, double *took_ns) {
    struct stamp stamp;
    char what[REASON_SIZE] = "";
    watch_step(PHASE_WARM_UP, name_of(contender));
    cell_poison(&race->cell);
    if (timed_call(race, contender, shift, &stamp) != 0) return -1;
    *took_ns = (double)(stamp.end_ns - stamp.start_ns);
    if (contender->candidate == NULL) return 0;
    bool fp32 = contender->candidate->accumulates_fp32;
    contender->hashes[shift] = cell_hash(&race->cell, race->group->kernels->hash);
    bool right = result_passes(race, shift, fp32, contender->hashes[shift], what, sizeof what);
    if (!all_right(race, right, what, sizeof what)) {
        drop_out(contender, what);
    } else if (fp32 && ranks_share_result(race) && !ranks_agree(race, contender->hashes[shift])) {
        drop_out(contender, "ranks differ in the bits of the result");
    } else {
        take_bits(race, contender, shift);
    }
    return 0;
}

// Runs every set of data once, in full view of the reference; these calls warm up too.
static int verify(struct race *race, struct contender *contender) {
    double took_ns = 0, least_ns = 1e18;
    for (size_t shift = 0; shift < race->cell.shifts && !contender->out_of_race; shift++) {
        if (verify_call(race, contender, shift, &took_ns) != 0) return -1;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    MPI_Allreduce(&least_ns, &contender->estimate_ns, 1, MPI_DOUBLE, MPI_MAX, race->group->comm);
    return 0;
}

// ---- sampling -----------------------------------------------------------------------------------

// Whether the result that a timed call left is right.
static bool result_is_right(struct race *race, struct contender *contender, size_t shift) {
    if (contender->candidate == NULL) return true;
    if (cell_hash(&race->cell, race->group->kernels->hash) == contender->hashes[shift]) return true;
    char what[REASON_SIZE];
    if (contender->candidate->accumulates_fp32) return false; // its bits never change
    race->group->control->varied[race->group->rank]++;
    return cell_check(&race->cell, shift, false, what, sizeof what);
}

static double to_us(uint64_t ns) {
    return (double)ns / 1000;
}

// Rank 0: takes over the times of a burst from all ranks.
static void keep_samples(struct race *race, struct contender *contender, int timed) {
    struct control *control = race->group->control;
    for (int i = 0; i < timed; i++) {
        uint64_t longest = 0, first = UINT64_MAX, last = 0;
        for (int rank = 0; rank < race->group->size; rank++) {
            struct stamp stamp = control->stamps[rank][i];
            if (stamp.end_ns - stamp.start_ns > longest) longest = stamp.end_ns - stamp.start_ns;
            if (stamp.start_ns < first) first = stamp.start_ns;
            if (stamp.start_ns > last) last = stamp.start_ns;
        }
        contender->times_us[contender->count + (size_t)i] = to_us(longest);
        contender->skews_us[contender->count + (size_t)i] = to_us(last - first);
    }
    for (int rank = 0; rank < race->group->size; rank++) {
        contender->wrong += control->wrong[rank];
        if (control->varied[rank] > 0) contender->bits = NO_BITS;
    }
}

// Some calls of one contender in a row, the first of them untimed where calls are short.
static int burst(struct race *race, struct contender *contender) {
    struct control *control = race->group->control;
    int rank = race->group->rank, timed = (int)(BURST_NS / (contender->estimate_ns + 1));
    size_t left = race->request->max_samples - contender->count;
    timed = timed < 1 ? 1 : timed > MAX_BURST ? MAX_BURST : timed;
    if ((size_t)timed > left) timed = (int)left;
    struct stamp unused;
    uint32_t wrong = 0;
    control->varied[rank] = 0;
    watch_step(PHASE_TIMED, name_of(contender));
    if (contender->estimate_ns < WARM_UP_BELOW_NS &&
        timed_call(race, contender, next_shift(race), &unused) != 0)
        return -1;
    for (int i = 0; i < timed; i++) {
        size_t shift = next_shift(race);
        if (timed_call(race, contender, shift, &control->stamps[rank][i]) != 0) return -1;
        wrong += !result_is_right(race, contender, shift);
    }
    control->wrong[rank] = wrong;
    if (!group_barrier(race->group)) return -1;
    if (rank == 0) keep_samples(race, contender, timed);
    contender->count += (size_t)timed;
    return group_barrier(race->group) ? 0 : -1;
}

static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static void shuffle(int order[], int count, uint32_t *random) {
    for (int i = count - 1; i > 0; i--) {
        int other = (int)(next_random(random) % (uint32_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static bool is_sampled(const struct race *race, const struct contender *contender) {
    return !contender->out_of_race && !contender->settled && contender->count < race->request->max_samples;
}

// Rank 0: settles who is clearly slower than the best, or known precisely enough. The probe goes on as long
// as anyone does.
static void settle(struct race *race) {
    struct summary summaries[MAX_CANDIDATES + 1];
    double best_high_us = INFINITY;
    for (int i = 1; i < race->count; i++) {
        struct contender *contender = &race->contenders[i];
        if (contender->out_of_race || contender->count < SLOWER_SAMPLES) continue;
        summaries[i] = summarise(contender->times_us, contender->count);
        best_high_us = fmin(best_high_us, summaries[i].high);
    }
    for (int i = 1; i < race->count; i++) {
        struct contender *contender = &race->contenders[i];
        if (contender->out_of_race || contender->count < SLOWER_SAMPLES) continue;
        const struct summary *summary = &summaries[i];
        bool is_precise = contender->count >= race->request->min_samples &&
                          summary->high - summary->low <= 2 * race->request->precision * summary->median;
        contender->settled = summary->low > best_high_us || is_precise;
    }
}

// Rank 0 decides whether to go round once more.
static bool wants_more(const struct race *race, uint64_t since_ns) {
    const struct request *request = race->request;
    size_t fewest = SIZE_MAX;
    bool anyone = false;
    for (int i = 0; i < race->count; i++) {
        const struct contender *contender = &race->contenders[i];
        if (!is_sampled(race, contender)) continue;
        if (contender->count < fewest) fewest = contender->count;
        anyone = anyone || i > 0;
    }
    double elapsed_us = to_us(clock_ns() - since_ns);
    if (!anyone) return false;
    if (elapsed_us < request->budget_us) return true;
    return fewest < (elapsed_us < OVERDRAFT * request->budget_us ? request->min_samples : FEWEST_SAMPLES);
}

// Rank 0's word on who is sampled in this round, one bit each, on all ranks; 0: the race is over.
static bool agree_on_round(struct race *race, uint64_t since_ns, size_t round, uint64_t *sampled) {
    *sampled = 0;
    if (race->group->rank == 0) {
        if (round <= SETTLED_EVERY_ROUND || (round & (round - 1)) == 0) settle(race);
        bool goes_on = wants_more(race, since_ns);
        for (int i = 0; goes_on && i < race->count; i++) {
            if (is_sampled(race, &race->contenders[i])) *sampled |= 1ULL << i;
        }
    }
    return group_agree(race->group, sampled);
}

static int sample(struct race *race) {
    int order[MAX_CANDIDATES + 1];
    uint32_t random = race->request->seed * 2654435761u | 1;
    uint64_t since_ns = clock_ns(), sampled;
    for (int i = 0; i < race->count; i++) order[i] = i;
    for (size_t round = 1;; round++) {
        if (!agree_on_round(race, since_ns, round, &sampled)) return -1;
        if (sampled == 0) return 0;
        shuffle(order, race->count, &random);
        for (int i = 0; i < race->count; i++) {
            if (!(sampled >> order[i] & 1)) continue;
            if (burst(race, &race->contenders[order[i]]) != 0) return -1;
        }
    }
}

// ---- the regime ---------------------------------------------------------------------------------

// Median time for a flag to go from rank 0 to `peer` and back.
static bool roundtrip(struct group *group, int peer, double *result_us) {
    double samples[ROUNDTRIP_SAMPLES];
    struct control *control = group->control;
    uint32_t turn = atomic_load(&control->ping.value);
    for (int sample_index = 0; sample_index < ROUNDTRIP_SAMPLES; sample_index++) {
        if (!group_barrier(group)) return false;
        uint64_t start_ns = clock_ns();
        for (int i = 0; i < ROUNDTRIPS; i++) {
            turn++;
            if (group->rank == 0) {
                atomic_store_explicit(&control->ping.value, turn, memory_order_release);
                if (!group_wait(group, &control->pong.value, turn)) return false;
            } else if (group->rank == peer) {
                if (!group_wait(group, &control->ping.value, turn)) return false;
                atomic_store_explicit(&control->pong.value, turn, memory_order_release);
            }
        }
        samples[sample_index] = to_us(clock_ns() - start_ns) / ROUNDTRIPS;
    }
    *result_us = median(samples, ROUNDTRIP_SAMPLES);
    return group_barrier(group);
}

// Takes the round trip between rank 0 and its slowest peer, which the first time is looked for.
static int probe_roundtrip(struct harness *harness) {
    struct group *group = harness->group;
    int first = harness->slowest_peer > 0 ? harness->slowest_peer : 1;
    int last = harness->slowest_peer > 0 ? harness->slowest_peer : group->size - 1;
    double slowest_us = 0;
    for (int peer = first; peer <= last; peer++) {
        double time_us;
        if (!roundtrip(group, peer, &time_us)) return -1;
        if (time_us > slowest_us) {
            slowest_us = time_us;
            harness->slowest_peer = peer;
        }
    }
    harness->roundtrip_us = slowest_us;
    MPI_Bcast(&harness->roundtrip_us, 1, MPI_DOUBLE, 0, group->comm);
    MPI_Bcast(&harness->slowest_peer, 1, MPI_INT, 0, group->comm);
    return 0;
}

// ---- one request --------------------------------------------------------------------------------

const char *harness_refusal(const struct harness *harness, int index, const struct shape *shape,
                            const struct call *call) {
    const char *refusal = shape_refusal_of_ranks(shape, harness->group->size);
    if (refusal == NULL && !candidate_does(&host_candidates[index], shape->op)) {
        refusal = "does not do this op";
    }
    if (refusal == NULL && !harness->is_set_up[index]) refusal = harness->unavailable[index];
    if (refusal == NULL && host_candidates[index].plugin != NULL) {
        refusal = plugins_refusal(&host_candidates[index], harness->group, call);
        if (refusal == NULL && !plugins_takes_place(&host_candidates[index], false))
            refusal = "works in place";
    }
    if (refusal == NULL) refusal = host_candidates[index].strategy->supports(harness->group, call);
    return refusal;
}

static void enter(struct race *race, int index) {
    struct harness *harness = race->harness;
    struct contender *contender = &race->contenders[race->count++];
    const struct candidate *candidate = &host_candidates[index];
    struct call call = cell_call(&race->cell, 0);
    contender->candidate = candidate;
    contender->state = harness->states[index];
    const char *refusal = harness_refusal(harness, index, &race->request->shape, &call);
    if (refusal != NULL) drop_out(contender, refusal);
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

static void close_race(struct race *race) {
    for (int i = 0; i < race->count; i++) {
        free(race->contenders[i].times_us);
        free(race->contenders[i].skews_us);
    }
    cell_close(&race->cell);
}

static void report(struct race *race, struct result results[]) {
    struct contender *probe = &race->contenders[0];
    double copy_us = probe->count > 0 ? median(probe->times_us, probe->count) : 0;
    double bound_us = copy_us > race->harness->roundtrip_us ? copy_us : race->harness->roundtrip_us;
    for (int i = 1; i < race->count; i++) {
        struct contender *contender = &race->contenders[i];
        long index = contender->candidate - host_candidates;
        struct result *result = &results[index];
        *result = (struct result){.candidate = contender->candidate,
                                  .bound_us = bound_us,
                                  .bits = contender->bits,
                                  .wrong = contender->wrong};
        if (contender->wrong > 0) {
            snprintf(contender->reason, sizeof contender->reason, "wrong result in %zu of %zu timed calls",
                     contender->wrong, contender->count);
        }
        if (contender->reason[0] != '\0') {
            snprintf(last_reasons[index], REASON_SIZE, "%s", contender->reason);
            result->reason = last_reasons[index];
            continue;
        }
        result->time_us = summarise(contender->times_us, contender->count);
        result->skew_us = median(contender->skews_us, contender->count);
    }
}

static int run_race(struct race *race) {
    for (int i = 0; i < race->count; i++) {
        if (!race->contenders[i].out_of_race && verify(race, &race->contenders[i]) != 0) return -1;
    }
    return sample(race);
}

int harness_measure(struct harness *harness, const struct request *request, struct result results[]) {
    struct race race = {.harness = harness, .group = harness->group, .request = request, .count = 1};
    struct group *group = harness->group;
    memset(results, 0, (size_t)host_candidate_count * sizeof *results);
    watch_step(PHASE_WARM_UP, "");
    int opened = shape_refusal_of_ranks(&request->shape, group->size) == NULL &&
                 cell_open(&race.cell, &request->shape, group->rank, group->size, request->seed) == 0;
    for (int i = 0; i < host_candidate_count; i++) {
        if (request->wanted[i]) enter(&race, i);
    }
    int complete = opened && allocate_samples(&race), all_complete;
    MPI_Allreduce(&complete, &all_complete, 1, MPI_INT, MPI_MIN, group->comm);
    int status = 0;
    for (int i = 0; !all_complete && i < race.count; i++) drop_out(&race.contenders[i], "out of memory");
    if (all_complete) status = run_race(&race);
    if (status == 0 && group->rank == 0) report(&race, results);
    // Where ranks share cores a round trip tells of the scheduler, and takes long.
    if (status == 0 && !group->oversubscribed) status = probe_roundtrip(harness);
    watch_rest();
    close_race(&race);
    return status;
}

// ---- the harness --------------------------------------------------------------------------------

int harness_open(struct harness *harness, struct group *group) {
    *harness = (struct harness){.group = group};
    watch_step(PHASE_SET_UP, "");
    if (probe_roundtrip(harness) != 0) return -1;
    for (int i = 0; i < host_candidate_count; i++) {
        const struct candidate *candidate = &host_candidates[i];
        watch_step(PHASE_SET_UP, candidate->name);
        harness->is_set_up[i] =
            candidate->strategy->setup(candidate, group, &harness->states[i], harness->unavailable[i]) == 0;
    }
    return 0;
}

void harness_close(struct harness *harness) {
    for (int i = 0; i < host_candidate_count; i++) {
        if (!harness->is_set_up[i]) continue;
        watch_step(PHASE_TEARDOWN, host_candidates[i].name);
        host_candidates[i].strategy->teardown(harness->states[i]);
    }
}
