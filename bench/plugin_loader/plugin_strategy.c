// Plans and calls of plug-ins; see plugin_strategy.h.
#include "plugin_strategy.h"

#include <stdio.h>
#include <stdlib.h>

#include "calls/backend.h"
#include "calls/in_place.h"
#include "elements/fusion.h"
#include "plugin_rank.h"

// A prepared shape of one candidate.
struct plan {
    struct plugin_candidate *candidate;
    struct group *group;
    void *plan;
    struct guarded workspace;
    size_t workspace_bytes;
};

struct kept_plan {
    struct call call; // its shape; its pointers are not used
    size_t largest;
    bool in_place;
    struct plan *plan;
};

struct plugin_state {
    struct plugin_candidate *candidate;
    struct instance *instance;
    struct kept_plan *kept;
    size_t kept_count;
};

static int plugin_setup(const struct candidate *candidate, struct group *group, void **state,
                        char reason[REASON_SIZE]) {
    struct plugin_candidate *own = (struct plugin_candidate *)(uintptr_t)candidate->plugin;
    struct instance *instance = plugin_open_instance(own->plugin, group, reason);
    if (instance == NULL) return -1;
    struct plugin_state *made = calloc(1, sizeof *made);
    *state = made;
    if (made == NULL) return -1;
    *made = (struct plugin_state){.candidate = own, .instance = instance};
    return 0;
}

// ---- plans --------------------------------------------------------------------------------------

// The call as plug-ins see it. Its arrays are those of `counts`.
static gt_call shape_of(const struct call *call, const struct group *group, uint64_t counts[4][MAX_RANKS]) {
    gt_call shape = {.size = sizeof shape,
                     .op = (int32_t)call->op,
                     .dtype = (int32_t)call->dtype,
                     .reduce_op = GT_SUM,
                     .fusion = (int32_t)call->fusion,
                     .place = call_is_in_place(call, group->rank) ? GT_PLACE_IN : GT_PLACE_OUT,
                     .root = call->root,
                     .captured = call->captured,
                     .send_counts = counts[0],
                     .send_offsets = counts[1],
                     .receive_counts = counts[2],
                     .receive_offsets = counts[3],
                     .hidden_size = (uint32_t)call->hidden_size,
                     .epsilon = call->epsilon,
                     .scale = call->scale};
    const struct traffic *traffic = call->traffic;
    for (int rank = 0; rank < group->size; rank++) {
        counts[0][rank] = traffic ? traffic->sent[rank] : call_elements(call);
        counts[1][rank] = traffic ? traffic->send_at[rank] : 0;
        counts[2][rank] = traffic ? traffic->received[rank] : call_elements(call);
        counts[3][rank] = traffic ? traffic->receive_at[rank] : 0;
    }
    shape.count = traffic ? traffic->largest : call_elements(call);
    shape.send_elements = traffic ? traffic->send_elements : call_elements(call);
    shape.receive_elements = traffic ? traffic->receive_elements : call_elements(call);
    return shape;
}

static void fail_candidate(const struct plugin_state *state, const char *what, const char *why) {
    char text[FAILURE_SIZE];
    snprintf(text, sizeof text, "strategy %s: %s: %s", state->candidate->declared.name, what, why);
    group_fail(state->instance->group, text);
}

// Whether the plan can be used: prepare succeeded in time, and its workspace was allocated.
static bool complete_plan(struct plan *made, gt_status status, char reason[REASON_SIZE]) {
    const struct plugin *plugin = made->candidate->plugin;
    void *state = plugin->instances[made->group->rank]->state;
    if (status == GT_UNSUPPORTED) {
        snprintf(reason, REASON_SIZE, "does not support such a call");
    } else if (plugin_is_cancelled(plugin, made->group->rank)) {
        snprintf(reason, REASON_SIZE, "prepare: did not return in time: it ended when it was cancelled");
    } else if (status != GT_OK) {
        snprintf(reason, REASON_SIZE, "prepare: %s", plugin_error(plugin, state));
    } else if (made->workspace_bytes > 0 && guarded_open(made->group, &made->workspace, made->workspace_bytes,
                                                         backend->services->alignment, true) != 0) {
        snprintf(reason, REASON_SIZE, "no memory for its workspace");
    } else {
        return true;
    }
    return false;
}

// Collective. The status and reason of the first rank that cannot do it, on all ranks; 0: all can.
static int share_refusal(struct group *group, int status, char reason[REASON_SIZE]) {
    long first = group_min(group, status == 0 ? INT32_MAX : group->rank);
    if (first == INT32_MAX) return 0;
    group_broadcast(group, (int)first, &status, sizeof status);
    group_broadcast(group, (int)first, reason, REASON_SIZE);
    return status;
}

static void call_release(const struct plan *plan) {
    struct plugin *plugin = plan->candidate->plugin;
    plugin_begin_call(plugin, plan->group);
    plugin->functions.release(plan->plan);
}

// Collective. 1: the candidate does not support such a call; -1: it failed; `reason` is the same on all
// ranks.
static int prepare(struct plugin_state *state, const struct call *call, struct plan **plan,
                   char reason[REASON_SIZE]) {
    const gt_plugin *functions = &state->candidate->plugin->functions;
    struct group *group = state->instance->group;
    uint64_t counts[4][MAX_RANKS];
    gt_call shape = shape_of(call, group, counts);
    gt_status status = GT_FAILED;
    struct plan *made = calloc(1, sizeof *made);
    if (group_min(group, made != NULL) == 0) {
        free(made);
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    made->candidate = state->candidate;
    made->group = group;
    plugin_begin_call(state->candidate->plugin, group);
    status = functions->prepare(state->instance->state, state->candidate->index, &shape,
                                &made->workspace_bytes, &made->plan);
    bool is_done = complete_plan(made, status, reason);
    int refusal = share_refusal(group, is_done ? 0 : status == GT_UNSUPPORTED ? 1 : -1, reason);
    *plan = refusal == 0 ? made : NULL;
    if (refusal == 0) return 0;
    if (status == GT_OK) call_release(made);
    guarded_close(group, &made->workspace);
    free(made);
    return refusal;
}

static bool release(struct plan *plan) {
    call_release(plan);
    bool whole = guarded_is_whole(plan->group, &plan->workspace);
    guarded_close(plan->group, &plan->workspace);
    free(plan);
    return whole;
}

bool plugins_release(const struct candidate *candidate, void *plan) {
    return candidate->plugin == NULL || plan == NULL || release(plan);
}

static bool is_of(const struct kept_plan *kept, const struct call *call, size_t largest, bool in_place) {
    const struct call *of = &kept->call;
    return of->op == call->op && of->dtype == call->dtype && of->fusion == call->fusion &&
           of->num_tokens == call->num_tokens && of->hidden_size == call->hidden_size &&
           of->root == call->root && of->captured == call->captured && kept->largest == largest &&
           kept->in_place == in_place;
}

// The plan of this call's shape, if the caller keeps none.
static int kept_plan(struct plugin_state *state, const struct call *call, struct plan **plan,
                     char reason[REASON_SIZE]) {
    size_t largest = call->traffic ? call->traffic->largest : 0;
    bool in_place = call_is_in_place(call, state->instance->group->rank);
    for (size_t i = state->kept_count; i-- > 0;) {
        *plan = state->kept[i].plan;
        if (is_of(&state->kept[i], call, largest, in_place)) return 0;
    }
    struct kept_plan *more = realloc(state->kept, (state->kept_count + 1) * sizeof *more);
    if (more != NULL) state->kept = more;
    if (group_min(state->instance->group, more != NULL) == 0) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    int status = prepare(state, call, plan, reason);
    if (status == 0) more[state->kept_count++] = (struct kept_plan){*call, largest, in_place, *plan};
    return status;
}

static int plan_of(struct plugin_state *state, const struct call *call, struct plan **plan,
                   char reason[REASON_SIZE]) {
    if (call->plan == NULL) return kept_plan(state, call, plan, reason);
    *plan = *call->plan;
    if (*plan != NULL) return 0;
    int status = prepare(state, call, plan, reason);
    *call->plan = *plan;
    return status;
}

// ---- the struct of functions --------------------------------------------------------------------

static const char *plugin_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return NULL; // plugins_refusal decides, since it has the candidate
}

// The part of a call that the library does. With a separate epilogue it is the sum, written to residual_out,
// where the epilogue reads it.
static struct call own_part(const struct plugin_state *state, const struct call *call) {
    struct call part = *call;
    if (!state->candidate->has_epilogue_apart) return part;
    part.fusion = FUSION_NONE;
    part.out = call->residual_out;
    part.residual = part.gamma = NULL;
    part.residual_out = NULL;
    part.block_scales = NULL;
    return part;
}

static int plugin_prepare(void *state, const struct call *whole, char reason[REASON_SIZE]) {
    struct plugin_state *own = state;
    struct plan *unused;
    struct call call = own_part(own, whole);
    if (!call.captured || (own->candidate->declared.flags & GT_FLAG_CAPTURABLE) != 0)
        return plan_of(own, &call, &unused, reason);
    snprintf(reason, REASON_SIZE, "cannot be captured into a graph");
    return 1;
}

// The library's part of a call.
static int run_part(struct plugin_state *own, const struct call *call) {
    struct plan *plan;
    char reason[REASON_SIZE];
    if (plan_of(own, call, &plan, reason) != 0) {
        fail_candidate(own, "run", reason);
        return -1;
    }
    bool is_fused = call->fusion != FUSION_NONE;
    bool has_codes = fusion_has_codes(call->fusion);
    gt_buffers buffers = {.size = sizeof buffers,
                          .send = call->input,
                          .receive = is_fused ? NULL : call->out,
                          .workspace = plan->workspace.data,
                          .workspace_bytes = plan->workspace_bytes,
                          .residual_in = call->residual,
                          .norm_weight = call->gamma,
                          .residual_out = call->residual_out,
                          .norm_out = is_fused && !has_codes ? call->out : NULL,
                          .quant_out = has_codes ? call->out : NULL,
                          .scale_out = call->block_scales};
    plugin_begin_call(own->candidate->plugin, plan->group);
    bool is_declared = (own->candidate->declared.flags & GT_FLAG_COLLECTIVE_RUN) != 0;
    own->instance->in_run = is_declared ? NULL : own->candidate->declared.name;
    gt_status status =
        own->candidate->plugin->functions.run(plan->plan, &buffers, own->instance->rank.stream);
    own->instance->in_run = NULL;
    bool was_late = plugin_is_cancelled(own->candidate->plugin, plan->group->rank);
    if (status == GT_OK && !was_late) return 0;
    if (was_late)
        fail_candidate(own, "did not return in time", "it ended when it was cancelled");
    else
        fail_candidate(own, "run", plugin_error(own->candidate->plugin, own->instance->state));
    return -1;
}

static int plugin_run(void *state, const struct call *call) {
    struct plugin_state *own = state;
    struct call part = own_part(own, call);
    if (run_part(own, &part) != 0) return -1;
    bool apart = own->candidate->has_epilogue_apart;
    return !apart || backend->services->epilogue(own->instance->group, call) ? 0 : -1;
}

static void plugin_teardown(void *state) {
    struct plugin_state *own = state;
    struct plugin *plugin = own->candidate->plugin;
    struct group *group = own->instance->group;
    for (size_t i = 0; i < own->kept_count; i++) release(own->kept[i].plan);
    if (--plugin->users[group->rank] == 0) {
        plugin_end_instance(own->instance);
    }
    free(own->kept);
    free(own);
}

const struct strategy strategy_plugin = {
    .supports = plugin_supports,
    .setup = plugin_setup,
    .run = plugin_run,
    .teardown = plugin_teardown,
    .prepare = plugin_prepare,
};
