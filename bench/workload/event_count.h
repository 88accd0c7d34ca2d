// How a thread waits for work from its own rank or another: it reads its bell, then looks for work, and if
// there is none it waits until the bell has rung since. No ring is lost.
//
// A thread that waits by spinning keeps its core from the thread that computes there. By yielding, it lets
// that thread run, and the scheduler decides when it continues. On a futex it sleeps until a ring wakes it.
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

// In memory that all threads that ring it map. Zeroed memory is ready for use.
struct bell {
    _Alignas(64) _Atomic uint32_t rings;
    _Atomic uint32_t sleeping;
};

static inline uint32_t bell_seen(struct bell *bell) {
    return atomic_load_explicit(&bell->rings, memory_order_acquire);
}

static inline void bell_ring(struct bell *bell) {
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->sleeping) != 0)
        syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// Waits a little, or until the bell has rung since `seen`; then the caller looks for work again.
static inline void bell_wait(struct bell *bell, uint32_t seen, enum wait wait) {
    if (wait == WAIT_YIELD) {
        sched_yield();
    } else if (wait == WAIT_FUTEX) {
        const struct timespec a_while = {.tv_sec = 1};
        atomic_store(&bell->sleeping, 1);
        syscall(SYS_futex, &bell->rings, FUTEX_WAIT, seen, &a_while, NULL, 0);
        atomic_store(&bell->sleeping, 0);
    }
}

#endif
