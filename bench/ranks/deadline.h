// The deadline of work that may hang: late work is cancelled first, and ended after a grace time. A check may
// be late itself, because its thread had no processor or the machine was suspended. So either step needs two
// late checks in a row, and the grace time begins with the cancel.
#ifndef BENCH_DEADLINE_H
#define BENCH_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline {
    uint64_t since_ns;     // when the work of the last check began
    uint64_t cancelled_ns; // when it was cancelled; 0: it was not
    bool was_late;         // at the last check
};

enum verdict { VERDICT_NONE, VERDICT_CANCEL, VERDICT_END };

// Returns the verdict that is due now for work that began at `since_ns` and may take `most_ns`, of which the
// last `grace_ns` come after the cancel. Each verdict is returned once. A zeroed deadline is ready for use;
// another `since_ns` restarts it.
enum verdict deadline_check(struct deadline *deadline, uint64_t since_ns, uint64_t now_ns, uint64_t most_ns,
                            uint64_t grace_ns);

#endif
