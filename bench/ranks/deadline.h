// The deadline of work that may not come back: first it is told to end, and no sooner than a grace after that
// it is ended. Whoever looks may himself have had no processor, or the machine may have stood still: so
// either takes two looks in a row, and work that was told so late has its grace all the same.
#ifndef BENCH_DEADLINE_H
#define BENCH_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline {
    uint64_t since_ns; // when the work began that was looked at last
    uint64_t told_ns;  // when it was told to end; 0: it was not
    bool was_late;     // at the last look
};

enum verdict { VERDICT_NONE, VERDICT_TELL, VERDICT_END };

// What is due now, of work that began at `since_ns` and gets `most_ns`, the last `grace_ns` of these after it
// was told. Each is said once; a deadline begins as zeros, and again with each other work.
enum verdict deadline_look(struct deadline *deadline, uint64_t since_ns, uint64_t now_ns, uint64_t most_ns,
                           uint64_t grace_ns);

#endif
