// Stages that run strategies as the bench does: the harness verifies each call.
#include <stdio.h>
#include <stdlib.h>

#include "cuda/candidate.h"
#include "measure/harness.h"
#include "stages.h"

enum { FEW_SAMPLES = 1, MANY_SAMPLES = 25, TOKENS_PER_RANK = 2, HIDDEN_SIZE = 256 };

// The harness of a stage on one rank, and what it has counted on rank 0.
struct trials {
    struct group *group;
    struct findings *findings;
    struct harness harness;
    struct result results[MAX_CANDIDATES];
    int cells, right, wrong;
    char first[FINDING_SIZE]; // wrong result
};

// Whether a strategy is one of our own kernels. Those by multicast have a stage of their own.
static bool is_own(const struct candidate *candidate) {
    const struct kernel_detail *detail = candidate->detail;
    return candidate->strategy == &strategy_cuda_kernel && !cuda_kernel_facts[detail->kernel].needs_multicast;
}

// Whether a strategy has another kernel than the fused ones.
static bool has_epilogue_apart(const struct candidate *candidate) {
    return ((const struct kernel_detail *)candidate->detail)->epilogue != EPILOGUE_FUSED;
}

bool ranks_are_reached(const struct group *group, struct findings *findings) {
    const struct device *device = device_of(group);
    if (device->reach != REACH_NONE) return true;
    if (group->rank == 0)
        snprintf(findings->text, FINDING_SIZE, "%s; with --loopback one GPU is tested",
                 device->no_reach[0] != '\0' ? device->no_reach : "no peer access between the GPUs");
    return false;
}

static struct trials *open_trials(struct group *group, struct findings *findings) {
    uint8_t wanted[MAX_CANDIDATES] = {0};
    if (!ranks_are_reached(group, findings)) return NULL;
    struct trials *trials = calloc(1, sizeof *trials);
    if (group_min(group, trials != NULL) == 0) {
        free(trials);
        snprintf(findings->text, FINDING_SIZE, "out of memory");
        return NULL;
    }
    trials->group = group;
    trials->findings = findings;
    snprintf(findings->step, STEP_SIZE, "setting up strategies");
    for (int i = 0; i < candidate_count(); i++) wanted[i] = is_own(&backend->candidates[i]);
    if (harness_open(&trials->harness, group, wanted) == 0) return trials;
    note_flags(group, findings);
    free(trials);
    return NULL;
}

// Rank 0: counts the results of a request; a strategy without a time is wrong.
static void count_results(struct trials *trials, const struct request *request) {
    for (int i = 0; i < candidate_count(); i++) {
        if (!request->wanted[i]) continue;
        const char *reason = trials->results[i].reason;
        trials->right += reason == NULL;
        if (reason == NULL || trials->wrong++ > 0) continue;
        snprintf(trials->first, FINDING_SIZE, "%s, %s: %s", backend->candidates[i].name,
                 trials->findings->step, reason);
    }
    trials->cells++;
}

// Collective. Measures a cell with all of the strategies. False: see group_failure.
static bool try_cell(struct trials *trials, const struct shape *shape, enum mode mode, uint32_t samples) {
    struct request request = {.shape = *shape,
                              .mode = mode,
                              .min_samples = samples,
                              .max_samples = samples,
                              .budget_us = 1e6,
                              .seed = 1};
    for (int i = 0; i < candidate_count(); i++) {
        const struct candidate *candidate = &backend->candidates[i];
        request.wanted[i] =
            is_own(candidate) && (shape->fusion != FUSION_NONE || !has_epilogue_apart(candidate));
    }
    if (trials->group->rank == 0)
        snprintf(trials->findings->step, STEP_SIZE, "%s, %s, %zu x %zu", fusion_names[shape->fusion],
                 dtype_names[shape->dtype], shape->num_tokens, shape->hidden_size);
    if (harness_measure(&trials->harness, &request, trials->results) != 0) return false;
    if (trials->group->rank == 0) count_results(trials, &request);
    return true;
}

// Collective. Ends the harness, or, after a failure, only describes it.
static enum stage_end close_trials(struct trials *trials, bool is_open) {
    struct findings *findings = trials->findings;
    enum stage_end end = trials->wrong > 0 ? STAGE_FAILED : STAGE_OK;
    if (!is_open) {
        if (trials->group->rank == 0 && trials->harness.at_work[0] != '\0')
            snprintf(findings->step, STEP_SIZE, "%s", trials->harness.at_work);
        note_flags(trials->group, findings);
        return STAGE_FAILED; // memory that a GPU may still use is not freed; the process ends
    }
    if (trials->group->rank == 0 && end == STAGE_OK) {
        snprintf(findings->text, FINDING_SIZE,
                 "%d results of strategies in %d cells are right (%d ranks, %s)", trials->right,
                 trials->cells, trials->group->size, reach_names[device_of(trials->group)->reach]);
    } else if (trials->group->rank == 0) {
        snprintf(findings->text, FINDING_SIZE, "%d of %d results in %d cells are wrong or missing; %.200s",
                 trials->wrong, trials->wrong + trials->right, trials->cells, trials->first);
    }
    harness_close(&trials->harness);
    free(trials);
    return end;
}

// Collective. Runs kernels of the first data types with all epilogues.
static enum stage_end try_kernels(struct group *group, struct findings *findings, enum mode mode,
                                  int dtypes) {
    struct trials *trials = open_trials(group, findings);
    if (trials == NULL) return STAGE_FAILED;
    bool goes_on = true;
    for (int dtype = 0; dtype < dtypes; dtype++) {
        for (int fusion = 0; fusion < FUSIONS && goes_on; fusion++) {
            struct shape shape = {.dtype = (enum dtype)dtype,
                                  .fusion = (enum fusion)fusion,
                                  .num_tokens = TOKENS_PER_RANK * (size_t)group->size,
                                  .hidden_size = HIDDEN_SIZE};
            goes_on = try_cell(trials, &shape, mode, FEW_SAMPLES);
        }
    }
    return close_trials(trials, goes_on);
}

enum stage_end stage_launches(struct group *group, const struct stage *stage, struct findings *findings) {
    const struct device *device = device_of(group);
    bool is_programmatic = !stage->options.loopback && !device->options.no_programmatic;
    if (is_programmatic && !device->can_wait_for_launches) {
        snprintf(findings->text, FINDING_SIZE, "sm_%d has none", device->sm);
        return STAGE_SKIPPED;
    }
    return try_kernels(group, findings, MODE_EAGER, DTYPES);
}

// A graph of another data type differs in its kernels alone.
enum stage_end stage_graphs(struct group *group, const struct stage *stage, struct findings *findings) {
    (void)stage;
    return try_kernels(group, findings, MODE_GRAPH, 1);
}

// Another data type has the same accesses to memory of other processes.
enum stage_end stage_processes(struct group *group, const struct stage *stage, struct findings *findings) {
    (void)stage;
    return try_kernels(group, findings, MODE_EAGER, 1);
}

enum stage_end stage_messages(struct group *group, const struct stage *stage, struct findings *findings) {
    static const size_t tokens_per_rank[] = {2, 20, 100};
    struct trials *trials = open_trials(group, findings);
    (void)stage;
    if (trials == NULL) return STAGE_FAILED;
    bool goes_on = true;
    for (size_t i = 0; i < sizeof tokens_per_rank / sizeof tokens_per_rank[0] && goes_on; i++) {
        struct shape shape = {.num_tokens = tokens_per_rank[i] * (size_t)group->size,
                              .hidden_size = 4 * HIDDEN_SIZE};
        goes_on = try_cell(trials, &shape, MODE_EAGER, MANY_SAMPLES);
    }
    return close_trials(trials, goes_on);
}
