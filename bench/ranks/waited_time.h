// How long somebody has had to come back, as far as a program can know: time in which his thread waited for a
// processor counts half, so that it ends all the same; what passed while nobody looked does not count, for
// then this program may have stood still as a whole.
#ifndef BENCH_PATIENCE_H
#define BENCH_PATIENCE_H

#include <stdint.h>
#include <sys/types.h>

enum { PATIENCE_LOOK_NS = 10000000 }; // look as often as this

struct patience {
    uint64_t had_ns; // so far
    uint64_t looked_ns, starved_ns;
};

// `starved_ns`: how long his thread has ever waited for a processor.
void patience_begin(struct patience *patience, uint64_t now_ns, uint64_t starved_ns);
void patience_look(struct patience *patience, uint64_t now_ns, uint64_t starved_ns);

// What the kernel says of that; 0: nothing.
uint64_t patience_starved_ns(pid_t thread);

#endif
