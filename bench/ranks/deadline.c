// Deadlines; see deadline.h.
#include "deadline.h"

enum verdict deadline_check(struct deadline *deadline, uint64_t since_ns, uint64_t now_ns, uint64_t most_ns,
                            uint64_t grace_ns) {
    if (deadline->since_ns != since_ns) *deadline = (struct deadline){.since_ns = since_ns};
    bool is_cancelled = deadline->cancelled_ns != 0, was_late = deadline->was_late;
    uint64_t from_ns = is_cancelled ? deadline->cancelled_ns : since_ns;
    deadline->was_late =
        now_ns >= from_ns && now_ns - from_ns >= (is_cancelled ? grace_ns : most_ns - grace_ns);
    if (!deadline->was_late || !was_late) return VERDICT_NONE;
    deadline->was_late = false;
    deadline->cancelled_ns = now_ns;
    return is_cancelled ? VERDICT_END : VERDICT_CANCEL;
}
