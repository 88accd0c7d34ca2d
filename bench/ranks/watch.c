// The thread that watches a rank; see watch.h. culprit.h finds the rank that it waits for.
#include "watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "culprit.h"
#include "group.h"
#include "isolation_process.h"
#include "node_link.h"

enum { NAME_SIZE = ACTIVITY_WORDS * 8, REPORT_NS = 200000000, LAST_CHECK_NS = 50000000 };

static uint64_t timeout_ns;
static _Atomic uint64_t deadline_ns; // 0: none
static _Atomic enum phase own_phase; // while no group is watched

bool watch_report(int caller, const char *what, bool is_candidate) {
    const struct group *group = culprit_group();
    char culprit[FAILURE_SIZE / 2], waited[48] = "", text[FAILURE_SIZE], state;
    if (group == NULL || group->shares_process) return false;
    int rank = culprit_name(group, caller, &state, culprit, sizeof culprit);
    bool is_absent = rank >= 0 && (state == PROCESS_GONE || culprit_is_stopped(state));
    if (is_candidate && !is_absent && group_failure(group) == NULL) return false;
    if (rank >= 0 && rank != caller) snprintf(waited, sizeof waited, "; rank %d waited for it", caller);
    snprintf(text, sizeof text, "%s%s (%.40s)", culprit, waited, what);
    group_fail(group, text);
    return true;
}

// ---- the thread ---------------------------------------------------------------------------------

static void sleep_ns(uint64_t ns) {
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)},
              NULL);
}

// If no rank of this node is at fault, a node with the culprit gets the time to name it, and to end the run.
static void wait_for_other_nodes(const struct group *group) {
    char unused[FAILURE_SIZE], state;
    if (group->nodes > 1 && culprit_name(group, group->rank, &state, unused, sizeof unused) < 0)
        sleep_ns((uint64_t)(node_grace_s((double)timeout_ns * 1e-9) * 1e9));
}

// Reports the culprit, unless another rank has done so.
static void report(void) {
    const struct group *group = culprit_group();
    char culprit[FAILURE_SIZE], phase[80];
    double timeout_s = (double)timeout_ns * 1e-9;
    if (group != NULL) {
        wait_for_other_nodes(group);
        group_fail_late(group);
        return;
    }
    int rank = culprit_stopped_sibling();
    culprit_phase(atomic_load(&own_phase), "", phase, sizeof phase);
    if (rank >= 0) {
        snprintf(culprit, sizeof culprit, "rank %d is stopped, %s", rank, phase);
    } else {
        snprintf(culprit, sizeof culprit, "the ranks make no progress, %s", phase);
    }
    fprintf(stderr, "gentables-bench: %s; rank %d waited for %g s\n", culprit, culprit_rank_of(getpid()),
            timeout_s);
}

// Sleeps for at most one timeout, and so wakes in time for a deadline that is set meanwhile. A late step gets
// a little more time once, since the whole machine may have been suspended.
static void *watch(void *unused) {
    (void)unused;
    for (uint64_t late = 0;;) {
        uint64_t now_ns = clock_ns(), deadline = atomic_load(&deadline_ns), until_ns = now_ns + timeout_ns;
        if (deadline != 0 && now_ns >= deadline) {
            if (late == deadline) break;
            late = deadline;
            until_ns = now_ns + LAST_CHECK_NS;
        } else if (deadline != 0 && deadline < until_ns) {
            until_ns = deadline;
        }
        struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                 .tv_nsec = (long)(until_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    report();
    sleep_ns(REPORT_NS); // another rank may still be writing
    _exit(1);
}

void watch_begin(double timeout_s) {
    timeout_ns = (uint64_t)(timeout_s * 1e9) + 1;
    watch_step(PHASE_START, "");
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &former); // signals are for the main thread
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
}

// ---- what this rank does ------------------------------------------------------------------------

static void note_activity(enum phase phase, const char *name) {
    const struct group *group = culprit_group();
    atomic_store_explicit(&own_phase, phase, memory_order_relaxed);
    if (group == NULL) return;
    struct activity *activity = &group->control->of[group->rank].activity;
    char text[NAME_SIZE] = "";
    snprintf(text, sizeof text, "%s", name);
    for (int i = 0; i < ACTIVITY_WORDS; i++) {
        uint64_t word;
        memcpy(&word, text + 8 * i, sizeof word);
        atomic_store_explicit(&activity->name[i], word, memory_order_relaxed);
    }
    atomic_store_explicit(&activity->phase, phase, memory_order_relaxed);
}

void watch_step(enum phase phase, const char *name) {
    note_activity(phase, name);
    if (timeout_ns > 0) atomic_store(&deadline_ns, clock_ns() + timeout_ns);
}

void watch_rest(enum phase phase) {
    note_activity(phase, "");
    atomic_store(&deadline_ns, 0);
}
