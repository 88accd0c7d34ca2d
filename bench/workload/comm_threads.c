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

// MPI rings no bell when data arrive.
static enum wait wait_of(const struct crew *crew, bool under_way) {
    bool silent = under_way && crew->transport->kind == &transport_mpi && crew->wait == WAIT_FUTEX;
    return silent ? WAIT_YIELD : crew->wait;
}

// Moves a collective's slices on this thread's channels until they are over.
static void communicate(struct member *member, int collective) {
    struct crew *crew = member->crew;
    struct transport *transport = crew->transport;
    struct slice slices[MAX_CHANNELS];
    struct bell *bell = bell_of(transport, transport->group->rank, member->index);
    int count = 0, active;
    for (int channel = member->index; channel < transport->channels; channel += transport->threads) {
        slices[count] = (struct slice){&crew->program->collectives[collective], transport, channel, false};
        transport->kind->begin(&slices[count++]);
    }
    do {
        uint32_t seen = bell_seen(bell);
        bool moved = false;
        active = 0;
        for (int i = 0; i < count; i++) {
            if (slices[i].active) moved = transport->kind->progress(&slices[i]) || moved;
            active += slices[i].active;
        }
        if (!moved && active > 0) bell_wait(bell, seen, wait_of(crew, true));
    } while (active > 0);
}

static void do_one(struct member *member, int collective) {
    struct crew *crew = member->crew;
    struct span *span = NULL;
    uint64_t cpu_ns = 0;
    if (crew->spans != NULL) {
        span = &crew->spans[collective * MAX_THREADS + member->index];
        cpu_ns = thread_cpu_ns();
        span->begin_ns = clock_ns();
    }
    communicate(member, collective);
    if (span != NULL) {
        span->end_ns = clock_ns();
        span->cpu_ns = thread_cpu_ns() - cpu_ns;
        // Time charged during the reading does not belong to the interval; see step.c.
        if (span->cpu_ns > span->end_ns - span->begin_ns) span->cpu_ns = span->end_ns - span->begin_ns;
    }
    if (atomic_fetch_sub_explicit(&crew->left[collective], 1, memory_order_acq_rel) == 1)
        bell_ring(&crew->done_bell);
}

static void *run(void *argument) {
    struct member *member = argument;
    struct crew *crew = member->crew;
    struct bell *bell = bell_of(crew->transport, crew->transport->group->rank, member->index);
    member->tid = (int)gettid();
    uint32_t done = 0;
    atomic_fetch_sub_explicit(&crew->left[crew->program->collective_count], 1, memory_order_acq_rel);
    bell_ring(&crew->done_bell);
    for (;;) {
        uint32_t seen = bell_seen(bell);
        if (atomic_load_explicit(&crew->posted, memory_order_acquire) != done) {
            do_one(member, crew->queue[done % (uint32_t)crew->program->collective_count]);
            done++;
        } else if (atomic_load_explicit(&crew->ends, memory_order_acquire)) {
            return NULL;
        } else {
            bool rests = atomic_load_explicit(&crew->rests, memory_order_acquire);
            bell_wait(bell, seen, rests ? WAIT_FUTEX : wait_of(crew, false));
        }
    }
}

// ---- the computing thread's side ----------------------------------------------------------------

static void ring_all(struct crew *crew) {
    for (int i = 0; i < crew->size; i++) {
        bell_ring(bell_of(crew->transport, crew->transport->group->rank, i));
    }
}

void crew_rest(struct crew *crew, bool rests) {
    if (crew->wait == WAIT_FUTEX || atomic_load_explicit(&crew->rests, memory_order_relaxed) == rests) return;
    atomic_store_explicit(&crew->rests, rests, memory_order_release);
    ring_all(crew);
}

void crew_post(struct crew *crew, int collective) {
    uint32_t posted = atomic_load_explicit(&crew->posted, memory_order_relaxed);
    atomic_store_explicit(&crew->left[collective], (uint32_t)crew->size, memory_order_relaxed);
    crew->queue[posted % (uint32_t)crew->program->collective_count] = collective;
    atomic_store_explicit(&crew->posted, posted + 1, memory_order_release);
    ring_all(crew);
}

bool crew_is_done(const struct crew *crew, int collective) {
    return atomic_load_explicit(&crew->left[collective], memory_order_acquire) == 0;
}

void crew_await(struct crew *crew, int collective) {
    for (;;) {
        uint32_t seen = bell_seen(&crew->done_bell);
        if (crew_is_done(crew, collective)) return;
        bell_wait(&crew->done_bell, seen, crew->wait);
    }
}

int crew_start(struct crew *crew, struct transport *transport, struct program *program, enum wait wait) {
    size_t collectives = program->collective_count;
    memset(crew, 0, sizeof *crew);
    crew->transport = transport;
    crew->program = program;
    crew->wait = wait;
    crew->queue = calloc(collectives + 1, sizeof *crew->queue);
    crew->left =
        calloc(collectives + 1, sizeof *crew->left); // the last one: threads that have not started yet
    if (crew->queue == NULL || crew->left == NULL) {
        crew_end(crew);
        return -1;
    }
    int threads = collectives == 0 ? 0 : transport->threads;
    atomic_store(&crew->left[collectives], (uint32_t)threads);
    for (; crew->size < threads; crew->size++) {
        struct member *member = &crew->members[crew->size];
        *member = (struct member){.crew = crew, .index = crew->size};
        if (pthread_create(&member->thread, NULL, run, member) == 0) continue;
        crew_end(crew);
        return -1;
    }
    crew_await(crew, (int)collectives);
    return 0;
}

void crew_end(struct crew *crew) {
    atomic_store_explicit(&crew->ends, true, memory_order_release);
    ring_all(crew);
    for (int i = 0; i < crew->size; i++) pthread_join(crew->members[i].thread, NULL);
    free(crew->queue);
    free(crew->left);
}
