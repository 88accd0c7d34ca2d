// The communication threads of a rank. The computing thread posts collectives, which they execute in that
// order, and waits for those that it needs. Each thread moves the slices of its channels; a collective is
// complete when all threads have completed it.
#ifndef BENCH_WORKLOAD_COMM_THREADS_H
#define BENCH_WORKLOAD_COMM_THREADS_H

#include <pthread.h>

#include "transport.h"

// An interval of a thread, and how much of it the thread ran on a processor; UINT64_MAX: it is a GPU's.
struct span {
    uint64_t begin_ns, end_ns, cpu_ns;
};

struct comm_pool;

struct comm_thread {
    struct comm_pool *pool;
    pthread_t handle;
    int index;
    int tid; // the operating system's number of it
};

struct comm_pool {
    struct transport *transport;
    struct program *program;
    enum wait wait;
    int size; // threads that have a channel
    struct comm_thread threads[MAX_THREADS];
    struct event_count done_events; // the computing thread's
    int *queue;                     // of collectives, as many as there are
    _Atomic uint32_t posted;        // so far; the queue is a ring
    _Atomic uint32_t *left;         // threads that have not completed it, by collective
    _Atomic bool
        is_idle; // the step has no collectives: idle threads sleep, regardless of their way of waiting
    _Atomic bool ends;
    struct span *spans; // [collective][thread] of this step; NULL: it is not noted
};

// Starts the threads, for an open transport. -1: out of memory, or threads do not start.
int comm_pool_start(struct comm_pool *pool, struct transport *transport, struct program *program,
                    enum wait wait);
void comm_pool_end(struct comm_pool *pool);

// Sets whether the next step has no collectives: threads that poll for work would take their core from the
// GEMMs, which are timed without communication.
void comm_pool_set_idle(struct comm_pool *pool, bool is_idle);

// Posts a collective that is not in progress.
void comm_pool_post(struct comm_pool *pool, int collective);
bool comm_pool_is_done(const struct comm_pool *pool, int collective);
void comm_pool_await(struct comm_pool *pool, int collective);

// The calling thread's processor time, in nanoseconds.
uint64_t thread_cpu_ns(void);

#endif
