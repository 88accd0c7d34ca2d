// The time that a thread has had to return from a call. Time in which the thread waited for a processor
// counts half, so that the wait still ends. If an update is late, only the time of two updates counts, since
// the whole program may have been suspended.
#ifndef BENCH_WAITED_TIME_H
#define BENCH_WAITED_TIME_H

#include <stdint.h>
#include <sys/types.h>

enum { WAITED_TIME_UPDATE_NS = 10000000 }; // between two updates

struct waited_time {
    uint64_t had_ns; // so far
    uint64_t updated_ns, starved_ns;
};

// `starved_ns`: how long the thread has waited for a processor so far.
void waited_time_begin(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns);
void waited_time_update(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns);

// How long a thread of this process has waited for a processor so far, from /proc; 0: unknown.
uint64_t waited_time_starved_ns(pid_t thread);

#endif
