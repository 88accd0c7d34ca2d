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

struct crew;

struct member {
    struct crew *crew;
    pthread_t thread;
    int index;
    int tid; // the operating system's number of it
};

struct crew {
    struct transport *transport;
    struct program *program;
    enum wait wait;
    int size; // threads that have a channel
    struct member members[MAX_THREADS];
    struct bell done_bell;   // the computing thread's
    int *queue;              // of collectives, as many as there are
    _Atomic uint32_t posted; // so far; the queue is a ring
    _Atomic uint32_t *left;  // threads that have not completed it, by collective
    _Atomic bool rests; // the step has no collectives: idle threads sleep, regardless of their way of waiting
    _Atomic bool ends;
    struct span *spans; // [collective][thread] of this step; NULL: it is not noted
};

// Starts the threads, for an open transport. -1: out of memory, or threads do not start.
int crew_start(struct crew *crew, struct transport *transport, struct program *program, enum wait wait);
void crew_end(struct crew *crew);

// Sets whether the next step has no collectives: threads that poll for work would take their core from the
// GEMMs, which are timed without communication.
void crew_rest(struct crew *crew, bool rests);

// Posts a collective that is not in progress.
void crew_post(struct crew *crew, int collective);
bool crew_is_done(const struct crew *crew, int collective);
void crew_await(struct crew *crew, int collective);

// The calling thread's processor time, in nanoseconds.
uint64_t thread_cpu_ns(void);

#endif
