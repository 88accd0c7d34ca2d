// Needs of a step; see gpu_needs.h.
#include "gpu_needs.h"

#include <stdio.h>

void gpu_needs_set(enum need needs[], const struct program *program, int ranks, enum step_mode mode) {
    for (size_t i = 0; i < (size_t)ranks * program->action_count; i++) {
        const struct action action = program->actions[i % program->action_count];
        const struct collective *collective = &program->collectives[action.index];
        bool is_sent = action.kind == DO_POST && i < program->action_count && step_communicates(mode) &&
                       program->ranks > 1 && collective->in_elements + collective->out_elements > 0;
        needs[i] = action.kind == DO_GEMM ? NEEDS_KERNEL : is_sent ? NEEDS_WORK : NEEDS_NOTHING;
    }
}

// Of what is lacking, or where nothing is, of times that are outside.
static bool counts(enum need need, bool is_lost) {
    return is_lost ? need == NEEDS_WORK || need == NEEDS_KERNEL : need == NEEDS_TIME;
}

bool gpu_needs_say(const enum need needs[], const struct program *program, int ranks, char text[],
                   size_t text_size) {
    size_t count = (size_t)ranks * program->action_count, gemm_count = (size_t)ranks * program->gemm_count;
    size_t gemms = 0, others = 0, first = 0;
    bool is_lost = false;
    for (size_t i = 0; i < count; i++) is_lost = is_lost || counts(needs[i], true);
    for (size_t i = 0; i < count; i++) {
        size_t number = i % program->action_count;
        if (!counts(needs[i], is_lost)) continue;
        if (gemms + others == 0) first = number;
        if (program->actions[number].kind == DO_GEMM)
            gemms++;
        else
            others++;
    }
    if (gemms + others == 0) return false;
    const struct action action = program->actions[first];
    const char *name =
        action.kind == DO_GEMM ? program->gemms[action.index].name : program->collectives[action.index].name;
    snprintf(text, text_size, "%s: of %zu of %zu GEMMs, %zu of %zu collectives; first of %.40s",
             is_lost ? "lost records" : "has records with times outside the step", gemms, gemm_count, others,
             program->collective_count, name);
    return !is_lost;
}
