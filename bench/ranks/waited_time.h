// How much time a thread has had to return. Time in which the thread waited for a processor counts half, so
// that the wait still ends. Time that passed between two late looks does not count, since the whole program
// may have been suspended.
#ifndef BENCH_WAITED_TIME_H
#define BENCH_WAITED_TIME_H

#include <stdint.h>
#include <sys/types.h>

enum { WAITED_TIME_UPDATE_NS = 10000000 }; // between two looks

struct waited_time {
    uint64_t had_ns; // so far
    uint64_t looked_ns, starved_ns;
};

// `starved_ns`: how long the thread has waited for a processor in all.
void waited_time_begin(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns);
void waited_time_update(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns);

// That time of a thread of this process, from /proc; 0: unknown.
uint64_t waited_time_starved_ns(pid_t thread);

#endif
