// The communication threads; see comm_threads.h.
#include "comm_threads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t thread_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- one thread ---------------------------------------------------------------------------------

// MPI does not wake a thread when data arrive.
static enum wait wait_of(const struct comm_pool *pool, bool under_way) {
    bool silent = under_way && pool->transport->kind == &transport_mpi && pool->wait == WAIT_FUTEX;
    return silent ? WAIT_YIELD : pool->wait;
}

// Moves a collective's slices on this thread's channels until they are over.
static void communicate(struct comm_thread *thread, int collective) {
    struct comm_pool *pool = thread->pool;
    struct transport *transport = pool->transport;
    struct slice slices[MAX_CHANNELS];
    struct event_count *events = event_count_of(transport, transport->group->rank, thread->index);
    int count = 0, active;
    for (int channel = thread->index; channel < transport->channels; channel += transport->threads) {
        slices[count] = (struct slice){&pool->program->collectives[collective], transport, channel, false};
        transport->kind->begin(&slices[count++]);
    }
    do {
        uint32_t seen = event_count_read(events);
        bool moved = false;
        active = 0;
        for (int i = 0; i < count; i++) {
            if (slices[i].active) moved = transport->kind->progress(&slices[i]) || moved;
            active += slices[i].active;
        }
        if (!moved && active > 0) event_count_wait(events, seen, wait_of(pool, true));
    } while (active > 0);
}

static void do_one(struct comm_thread *thread, int collective) {
    struct comm_pool *pool = thread->pool;
    struct span *span = NULL;
    uint64_t cpu_ns = 0;
    if (pool->spans != NULL) {
        span = &pool->spans[collective * MAX_THREADS + thread->index];
        cpu_ns = thread_cpu_ns();
        span->begin_ns = clock_ns();
    }
    communicate(thread, collective);
    if (span != NULL) {
        span->end_ns = clock_ns();
        span->cpu_ns = thread_cpu_ns() - cpu_ns;
        // Time charged during the reading does not belong to the interval; see step.c.
        if (span->cpu_ns > span->end_ns - span->begin_ns) span->cpu_ns = span->end_ns - span->begin_ns;
    }
    if (atomic_fetch_sub_explicit(&pool->left[collective], 1, memory_order_acq_rel) == 1)
        event_count_advance(&pool->done_events);
}

static void *run(void *argument) {
    struct comm_thread *thread = argument;
    struct comm_pool *pool = thread->pool;
    struct event_count *events = event_count_of(pool->transport, pool->transport->group->rank, thread->index);
    thread->tid = (int)gettid();
    uint32_t done = 0;
    atomic_fetch_sub_explicit(&pool->left[pool->program->collective_count], 1, memory_order_acq_rel);
    event_count_advance(&pool->done_events);
    for (;;) {
        uint32_t seen = event_count_read(events);
        if (atomic_load_explicit(&pool->posted, memory_order_acquire) != done) {
            do_one(thread, pool->queue[done % (uint32_t)pool->program->collective_count]);
            done++;
        } else if (atomic_load_explicit(&pool->ends, memory_order_acquire)) {
            return NULL;
        } else {
            bool is_idle = atomic_load_explicit(&pool->is_idle, memory_order_acquire);
            event_count_wait(events, seen, is_idle ? WAIT_FUTEX : wait_of(pool, false));
        }
    }
}

// ---- the computing thread's side ----------------------------------------------------------------

static void wake_all(struct comm_pool *pool) {
    for (int i = 0; i < pool->size; i++) {
        event_count_advance(event_count_of(pool->transport, pool->transport->group->rank, i));
    }
}

void comm_pool_set_idle(struct comm_pool *pool, bool is_idle) {
    if (pool->wait == WAIT_FUTEX || atomic_load_explicit(&pool->is_idle, memory_order_relaxed) == is_idle)
        return;
    atomic_store_explicit(&pool->is_idle, is_idle, memory_order_release);
    wake_all(pool);
}

void comm_pool_post(struct comm_pool *pool, int collective) {
    uint32_t posted = atomic_load_explicit(&pool->posted, memory_order_relaxed);
    atomic_store_explicit(&pool->left[collective], (uint32_t)pool->size, memory_order_relaxed);
    pool->queue[posted % (uint32_t)pool->program->collective_count] = collective;
    atomic_store_explicit(&pool->posted, posted + 1, memory_order_release);
    wake_all(pool);
}

bool comm_pool_is_done(const struct comm_pool *pool, int collective) {
    return atomic_load_explicit(&pool->left[collective], memory_order_acquire) == 0;
}

void comm_pool_await(struct comm_pool *pool, int collective) {
    for (;;) {
        uint32_t seen = event_count_read(&pool->done_events);
        if (comm_pool_is_done(pool, collective)) return;
        event_count_wait(&pool->done_events, seen, pool->wait);
    }
}

int comm_pool_start(struct comm_pool *pool, struct transport *transport, struct program *program,
                    enum wait wait) {
    size_t collectives = program->collective_count;
    memset(pool, 0, sizeof *pool);
    pool->transport = transport;
    pool->program = program;
    pool->wait = wait;
    pool->queue = calloc(collectives + 1, sizeof *pool->queue);
    pool->left =
        calloc(collectives + 1, sizeof *pool->left); // the last one: threads that have not started yet
    if (pool->queue == NULL || pool->left == NULL) {
        comm_pool_end(pool);
        return -1;
    }
    int threads = collectives == 0 ? 0 : transport->threads;
    atomic_store(&pool->left[collectives], (uint32_t)threads);
    for (; pool->size < threads; pool->size++) {
        struct comm_thread *thread = &pool->threads[pool->size];
        *thread = (struct comm_thread){.pool = pool, .index = pool->size};
        if (pthread_create(&thread->handle, NULL, run, thread) == 0) continue;
        comm_pool_end(pool);
        return -1;
    }
    comm_pool_await(pool, (int)collectives);
    return 0;
}

void comm_pool_end(struct comm_pool *pool) {
    atomic_store_explicit(&pool->ends, true, memory_order_release);
    wake_all(pool);
    for (int i = 0; i < pool->size; i++) pthread_join(pool->threads[i].handle, NULL);
    free(pool->queue);
    free(pool->left);
}
