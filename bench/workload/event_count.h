// Event counts (Reed and Kanodia, Synchronization with Eventcounts and Sequencers, 1979), by which a thread
// waits for work from its own rank or another. It reads its count, then looks for work, and if there is
// none, it waits until the count has advanced since the reading. No event is lost.
//
// A thread that waits by spinning keeps its core from the thread that computes there. By yielding, it lets
// that thread run, and the scheduler decides when it continues. On a futex it sleeps until an event wakes it.
#ifndef BENCH_WORKLOAD_EVENT_COUNT_H
#define BENCH_WORKLOAD_EVENT_COUNT_H

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum wait { WAIT_FUTEX, WAIT_YIELD, WAIT_SPIN, WAITS };

// In memory that all threads map that advance it. Zeroed memory is ready for use.
struct event_count {
    _Alignas(64) _Atomic uint32_t count;
    _Atomic uint32_t sleeping;
};

static inline uint32_t event_count_read(struct event_count *events) {
    return atomic_load_explicit(&events->count, memory_order_acquire);
}

static inline void event_count_advance(struct event_count *events) {
    atomic_fetch_add(&events->count, 1);
    if (atomic_load(&events->sleeping) != 0)
        syscall(SYS_futex, &events->count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// Waits a little, or until the count has advanced beyond `seen`; then the caller looks for work again.
static inline void event_count_wait(struct event_count *events, uint32_t seen, enum wait wait) {
    if (wait == WAIT_YIELD) {
        sched_yield();
    } else if (wait == WAIT_FUTEX) {
        const struct timespec a_while = {.tv_sec = 1};
        atomic_store(&events->sleeping, 1);
        syscall(SYS_futex, &events->count, FUTEX_WAIT, seen, &a_while, NULL, 0);
        atomic_store(&events->sleeping, 0);
    }
}

#endif
