// How long somebody has had to come back, as far as a program can know: time in which his thread waited for a
// processor counts half, so that it ends all the same; what passed while nobody looked does not count, for
// then this program may have stood still as a whole.
#ifndef BENCH_WAITED_TIME_H
#define BENCH_WAITED_TIME_H

#include <stdint.h>
#include <sys/types.h>

enum { WAITED_TIME_LOOK_NS = 10000000 }; // look as often as this

struct waited_time {
    uint64_t had_ns; // so far
    uint64_t looked_ns, starved_ns;
};

// `starved_ns`: how long his thread has ever waited for a processor.
void waited_time_begin(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns);
void waited_time_look(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns);

// What the kernel says of that; 0: nothing.
uint64_t waited_time_starved_ns(pid_t thread);

#endif
