// Outcome and progress of a trial; see trial_state.h.
#include "trial_state.h"

static const uint64_t REPORT_EVERY_NS = 1000000000;

void trial_fail(struct trial *trial, int index, const char *reason) {
    if (trial->reasons[index][0] == '\0') snprintf(trial->reasons[index], REASON_SIZE, "%s", reason);
}

void trial_report_progress(struct trial *trial) {
    if (trial->group->rank != 0 || clock_ns() - trial->reported_ns < REPORT_EVERY_NS) return;
    trial->reported_ns = clock_ns();
    fprintf(trial->out, "progress done=%zu\n", trial->calls);
    fflush(trial->out);
}

void trial_share_reason(struct trial *trial, int index) {
    char *reason = trial->reasons[index];
    group_all_right(trial->group, reason[0] == '\0', reason, REASON_SIZE);
}

void trial_lack_memory(struct trial *trial, int index, const struct shape *shape) {
    size_t bytes = shape_bytes(shape);
    if (bytes <= LARGE_BYTES)
        trial_fail(trial, index, "no memory for its trial");
    else if (trial->untried[index] == 0 || bytes < trial->untried[index])
        trial->untried[index] = bytes;
}
