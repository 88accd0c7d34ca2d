// The deadline of work that may hang: first it is cancelled, and at least a grace time later it is ended. The
// watcher itself may have had no processor, or the machine may have been suspended. So either step takes two
// looks in a row, and work that was cancelled late still has its grace time.
#ifndef BENCH_DEADLINE_H
#define BENCH_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline {
    uint64_t since_ns;     // when the work of the last look began
    uint64_t cancelled_ns; // when it was cancelled; 0: it was not
    bool was_late;         // at the last look
};

enum verdict { VERDICT_NONE, VERDICT_CANCEL, VERDICT_END };

// What is due now for work that began at `since_ns` and may take `most_ns`, the last `grace_ns` of which come
// after the cancel. Each verdict is returned once. A deadline begins as zeros, and anew with other work.
enum verdict deadline_check(struct deadline *deadline, uint64_t since_ns, uint64_t now_ns, uint64_t most_ns,
                            uint64_t grace_ns);

#endif
