// Sets candidates up and tears them down; see setup.h.
#include "setup.h"

#include <stdio.h>

#include "plugin_loader/plugins.h"
#include "ranks/fault_report.h"
#include "ranks/watch.h"

const char *harness_refusal(const struct harness *harness, int index, const struct shape *shape,
                            const struct call *call) {
    const char *refusal = shape_refusal_of_ranks(shape, harness->group->size);
    if (refusal == NULL && !candidate_does(&backend->candidates[index], shape->op)) {
        refusal = "does not support this op";
    }
    if (refusal == NULL && !harness->is_set_up[index]) refusal = harness->unavailable[index];
    if (refusal == NULL) refusal = backend->refusal(&backend->candidates[index], harness->group, call);
    return refusal;
}

bool harness_has_skews(const struct group *group) {
    return backend->measures_skew && group->nodes == 1;
}

double harness_latency_us(const struct harness *harness) {
    return harness->group->nodes > 1 ? harness->roundtrip_us / 2 : harness->roundtrip_us;
}

int harness_open(struct harness *harness, struct group *group, const uint8_t wanted[]) {
    *harness = (struct harness){.group = group, .at_work = ""};
    watch_step(PHASE_SET_UP, "");
    if (backend->round_trip(group, &harness->roundtrip_us) != 0) return -1;
    for (int i = 0; i < candidate_count(); i++) {
        const struct candidate *candidate = &backend->candidates[i];
        if (wanted != NULL && !wanted[i]) {
            snprintf(harness->unavailable[i], REASON_SIZE, "not requested at the start");
            continue;
        }
        if (!candidate_spans(candidate, group->nodes)) {
            snprintf(harness->unavailable[i], REASON_SIZE, "%s",
                     group->nodes > 1 ? "ranks on several nodes" : "ranks on one node");
            continue;
        }
        watch_step(PHASE_SET_UP, candidate->name);
        const char *before = fault_current_work(), *work = plugins_work(candidate);
        fault_work(work != NULL ? work : before);
        harness->is_set_up[i] =
            candidate->strategy->setup(candidate, group, &harness->states[i], harness->unavailable[i]) == 0;
        fault_work(before);
    }
    return 0;
}

void harness_close(struct harness *harness) {
    for (int i = 0; i < candidate_count(); i++) {
        if (!harness->is_set_up[i]) continue;
        watch_step(PHASE_TEARDOWN, backend->candidates[i].name);
        const char *before = fault_current_work(), *work = plugins_work(&backend->candidates[i]);
        fault_work(work != NULL ? work : before);
        backend->candidates[i].strategy->teardown(harness->states[i]);
        fault_work(before);
    }
    cell_memory_free(&harness->memory);
}
