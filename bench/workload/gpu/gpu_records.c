// Needs of a step; see gpu_records.h.
#include "gpu_records.h"

#include <stdio.h>
#include <stdlib.h>

bool gpu_records_open(struct gpu_records *records, const struct program *program, int ranks) {
    *records = (struct gpu_records){.program = program, .ranks = ranks};
    records->needs = calloc((size_t)ranks * program->action_count + 1, sizeof *records->needs);
    return records->needs != NULL;
}

void gpu_records_close(struct gpu_records *records) {
    if (records->are_taken) gpu_activity_close();
    free(records->needs);
    *records = (struct gpu_records){.needs = NULL};
}

bool gpu_records_begin(struct gpu_records *records, enum step_mode mode, char reason[PROGRAM_REASON]) {
    records->lack[0] = '\0';
    records->are_outside = false;
    if (!gpu_records_step(records, mode) || gpu_activity_begin()) return true;
    snprintf(reason, PROGRAM_REASON, "CUPTI does not record any more");
    return false;
}

static void set_needs(const struct gpu_records *records, enum step_mode mode) {
    const struct program *program = records->program;
    for (size_t i = 0; i < (size_t)records->ranks * program->action_count; i++) {
        const struct action action = program->actions[i % program->action_count];
        const struct collective *collective = &program->collectives[action.index];
        bool is_sent = action.kind == DO_POST && i < program->action_count && step_communicates(mode) &&
                       program->ranks > 1 && collective->in_elements + collective->out_elements > 0;
        records->needs[i] = action.kind == DO_GEMM ? NEEDS_KERNEL : is_sent ? NEEDS_ACTIVITY : NEEDS_NOTHING;
    }
}

// Whether a need that remains is reported: `is_lost`: a missing record; else a time outside the step.
static bool counts(enum need need, bool is_lost) {
    return is_lost ? need == NEEDS_ACTIVITY || need == NEEDS_KERNEL : need == NEEDS_TIME;
}

// Describes the needs that remain. Lost records come before times outside the step.
static void describe_lack(struct gpu_records *records) {
    const struct program *program = records->program;
    size_t ranks = (size_t)records->ranks, gemms = 0, others = 0, first = 0;
    bool is_lost = false;
    for (size_t i = 0; i < ranks * program->action_count; i++)
        is_lost = is_lost || counts(records->needs[i], true);
    for (size_t i = 0; i < ranks * program->action_count; i++) {
        size_t number = i % program->action_count;
        if (!counts(records->needs[i], is_lost)) continue;
        if (gemms + others == 0) first = number;
        if (program->actions[number].kind == DO_GEMM)
            gemms++;
        else
            others++;
    }
    if (gemms + others == 0) return;
    const struct action action = program->actions[first];
    const char *name =
        action.kind == DO_GEMM ? program->gemms[action.index].name : program->collectives[action.index].name;
    snprintf(records->lack, sizeof records->lack,
             "%s: of %zu of %zu GEMMs, %zu of %zu collectives; first of %.40s",
             is_lost ? "lost records" : "has records with times outside the step", gemms,
             ranks * program->gemm_count, others, program->collective_count, name);
    records->are_outside = !is_lost;
}

bool gpu_records_end(struct gpu_records *records, enum step_mode mode, uint64_t begin_ns, uint64_t end_ns) {
    const struct gpu_activity_needs needs = {.needs = records->needs,
                                             .count = (size_t)records->ranks * records->program->action_count,
                                             .begin_ns = begin_ns,
                                             .end_ns = end_ns};
    set_needs(records, mode);
    if (gpu_activity_end(&needs, records->lack, sizeof records->lack)) describe_lack(records);
    return records->lack[0] == '\0';
}
