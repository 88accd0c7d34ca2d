// The communication threads of a rank. The thread that computes hands them collectives, which they do in that
// order, and waits for those that it needs. Each thread has the slices of its channels in flight; a
// collective is over when all threads are done with it.
#ifndef BENCH_WORKLOAD_CREW_H
#define BENCH_WORKLOAD_CREW_H

#include <pthread.h>

#include "transport.h"

// When a thread did something, and how much of that time it ran on a processor; UINT64_MAX: it is a GPU's.
struct span {
    uint64_t begin_ns, end_ns, cpu_ns;
};

struct crew;

struct member {
    struct crew *crew;
    pthread_t thread;
    int index;
    int tid; // as the kernel calls it
};

struct crew {
    struct transport *transport;
    struct program *program;
    enum wait wait;
    int size; // threads that have a channel
    struct member members[MAX_THREADS];
    struct bell done_bell;   // the computing thread's
    int *queue;              // of collectives, as many as there are
    _Atomic uint32_t posted; // so far; the queue goes round
    _Atomic uint32_t *left;  // threads that are not done with it, by collective
    _Atomic bool rests;      // nothing is asked for in this step: idle threads sleep, however they wait
    _Atomic bool ends;
    struct span *spans; // [collective][thread] of this step, or NULL: nothing is noted
};

// Starts the threads, for a transport that is open. -1: no memory, or no threads.
int crew_start(struct crew *crew, struct transport *transport, struct program *program, enum wait wait);
void crew_end(struct crew *crew);

// Whether the threads are left alone in what follows: those that poll for work would take their core from the
// GEMMs that are timed without any.
void crew_rest(struct crew *crew, bool rests);

// Hands over a collective that is not under way.
void crew_post(struct crew *crew, int collective);
bool crew_is_done(const struct crew *crew, int collective);
void crew_await(struct crew *crew, int collective);

// Nanoseconds that the calling thread has run.
uint64_t thread_cpu_ns(void);

#endif
