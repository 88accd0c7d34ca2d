// Who holds the others up; see watch.h.
//
// Who is stopped or gone the kernel tells (/proc). Else it is who has reached fewer barriers than others, or
// who sleeps, for ranks that wait here or in MPI spin. Before the ranks share memory they are found as
// children of one launcher, which gives each its number in the environment.
#include "watch.h"

#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "group.h"
#include "isolation_process.h"

enum { NAME_SIZE = ACTIVITY_WORDS * 8, SAY_IT_NS = 200000000, LAST_LOOK_NS = 50000000 };
enum { LOOKS = 5, LOOK_EVERY_NS = 2000000 };

static uint64_t timeout_ns;
static _Atomic uint64_t deadline_ns; // 0: none
static _Atomic(const struct group *) watched;
static _Atomic enum phase own_phase; // while no group is watched

// ---- what the kernel tells --------------------------------------------------------------------

static bool is_stopped(char state) {
    return state == 'T' || state == 't';
}

static bool is_asleep(char state) {
    return state == 'S' || state == 'D';
}

// The number that its launcher gave a process; -1: none.
static int rank_of(int pid) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID="};
    char path[64], *setting = NULL;
    size_t room = 0;
    int rank = -1;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && rank < 0 && getdelim(&setting, &room, '\0', file) > 0) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            size_t length = strlen(names[i]);
            if (strncmp(setting, names[i], length) == 0) rank = (int)strtol(setting + length, NULL, 10);
        }
    }
    free(setting);
    if (file != NULL) fclose(file);
    return rank;
}

// Who started a rank that has this parent: that one, or, where ranks have wardens, its parent.
static int starter(int parent) {
    int of_warden = -1;
    if (!warden_is_there()) return parent;
    process_state(parent, &of_warden);
    return of_warden;
}

// The rank of a process with the same starter that is stopped; -1: there is none.
static int stopped_sibling(void) {
    DIR *folder = opendir("/proc");
    int found = -1;
    for (struct dirent *entry; folder != NULL && found < 0 && (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        int pid = (int)strtol(entry->d_name, NULL, 10), parent = -1;
        if (!is_stopped(process_state(pid, &parent))) continue;
        if (starter(parent) == starter(getppid())) found = rank_of(pid);
    }
    if (folder != NULL) closedir(folder);
    return found;
}

// ---- who it is ----------------------------------------------------------------------------------

static void write_phase(enum phase phase, const char *name, char text[], size_t size) {
    static const char *const words[] = {
        [PHASE_START] = "at the start",     [PHASE_SET_UP] = "in the set-up", [PHASE_IDLE] = "between cells",
        [PHASE_WARM_UP] = "in the warm-up", [PHASE_TIMED] = "in timed calls", [PHASE_TEARDOWN] = "at the end",
        [PHASE_TRIAL] = "in the trial",     [PHASE_PASS] = "in the pass",
    };
    bool is_known = phase <= PHASE_PASS; // the peer's memory may hold anything
    snprintf(text, size, "%s%s%s", is_known ? words[phase] : "somewhere", name[0] != '\0' ? " of " : "",
             name);
}

static void write_activity(const struct activity *activity, char text[], size_t size) {
    uint64_t words[ACTIVITY_WORDS + 1] = {0};
    for (int i = 0; i < ACTIVITY_WORDS; i++) {
        words[i] = atomic_load_explicit(&activity->name[i], memory_order_relaxed);
    }
    write_phase(atomic_load_explicit(&activity->phase, memory_order_relaxed), (const char *)words, text,
                size);
}

static uint32_t barriers_of(const struct group *group, int rank) {
    return atomic_load_explicit(&group->control->arrived[rank].value, memory_order_relaxed);
}

// A rank that is behind another one; -1: none is.
static int last_rank(const struct group *group) {
    int last = 0, first = 0;
    for (int rank = 1; rank < group->size; rank++) {
        if (!counter_reached(barriers_of(group, rank), barriers_of(group, last))) last = rank;
        if (!counter_reached(barriers_of(group, first), barriers_of(group, rank))) first = rank;
    }
    return barriers_of(group, last) == barriers_of(group, first) ? -1 : last;
}

// Others may look at this rank meanwhile: asleep it would look like the culprit.
static void wait_awake(uint64_t ns) {
    uint64_t since_ns = clock_ns();
    while (clock_ns() - since_ns < ns) sched_yield();
}

// The first rank that is gone or stopped; or else that is behind; or else that sleeps in most of some looks,
// for who spins may sleep for a moment, and who sleeps be woken; -1: none is.
static int find_culprit(const struct group *group, int asking, char *state) {
    int asleep[MAX_RANKS] = {0}, unused;
    for (int look = 0; look < LOOKS; look++) {
        if (look > 0) wait_awake(LOOK_EVERY_NS);
        for (int rank = 0; rank < group->size; rank++) {
            *state = process_state(group->control->pids[rank], &unused);
            if (*state == PROCESS_GONE || (is_stopped(*state) && rank != asking)) return rank;
            asleep[rank] += is_asleep(*state);
        }
    }
    *state = 'R';
    int last = last_rank(group);
    if (last >= 0 && last != asking) return last;
    for (int rank = 0; rank < group->size; rank++) {
        if (2 * asleep[rank] > LOOKS) return rank;
    }
    return -1;
}

static int name_culprit(const struct group *group, int asking, char *state, char text[], size_t size) {
    char phase[80];
    int culprit = find_culprit(group, asking, state);
    write_activity(&group->control->activities[culprit >= 0 ? culprit : asking], phase, sizeof phase);
    const char *verb = *state == PROCESS_GONE ? "died" : is_stopped(*state) ? "is stopped" : "hangs";
    if (culprit >= 0) {
        snprintf(text, size, "rank %d %s, %s", culprit, verb, phase);
    } else {
        snprintf(text, size, "no rank comes back, %s", phase);
    }
    return culprit;
}

int watch_culprit(const struct group *group, int asking, char text[], size_t size) {
    char state;
    return name_culprit(group, asking, &state, text, size);
}

bool watch_blame(int asking, const char *what, bool is_candidate) {
    const struct group *group = atomic_load(&watched);
    char culprit[FAILURE_SIZE / 2], waited[48] = "", text[FAILURE_SIZE], state;
    if (group == NULL || group->shares_process) return false;
    int rank = name_culprit(group, asking, &state, culprit, sizeof culprit);
    bool is_absent = rank >= 0 && (state == PROCESS_GONE || is_stopped(state));
    if (is_candidate && !is_absent && group_failure(group) == NULL) return false;
    if (rank >= 0 && rank != asking) snprintf(waited, sizeof waited, "; rank %d waited for it", asking);
    snprintf(text, sizeof text, "%s%s (%.40s)", culprit, waited, what);
    group_fail(group, text);
    return true;
}

// ---- the thread ---------------------------------------------------------------------------------

// Says who it is, unless another rank did.
static void tell(void) {
    const struct group *group = atomic_load(&watched);
    char culprit[FAILURE_SIZE], phase[80];
    double timeout_s = (double)timeout_ns * 1e-9;
    if (group != NULL) {
        group_blame(group);
        return;
    }
    int rank = stopped_sibling();
    write_phase(atomic_load(&own_phase), "", phase, sizeof phase);
    if (rank >= 0) {
        snprintf(culprit, sizeof culprit, "rank %d is stopped, %s", rank, phase);
    } else {
        snprintf(culprit, sizeof culprit, "the ranks do not get on, %s", phase);
    }
    fprintf(stderr, "gentables-bench: %s; rank %d waited for %g s\n", culprit, rank_of(getpid()), timeout_s);
}

// Sleeps no longer than a timeout, and so wakes in time for a deadline that is set meanwhile. Perhaps the
// whole machine stood still: what is late gets a little more, once.
static void *watch(void *unused) {
    (void)unused;
    for (uint64_t late = 0;;) {
        uint64_t now_ns = clock_ns(), deadline = atomic_load(&deadline_ns), until_ns = now_ns + timeout_ns;
        if (deadline != 0 && now_ns >= deadline) {
            if (late == deadline) break;
            late = deadline;
            until_ns = now_ns + LAST_LOOK_NS;
        } else if (deadline != 0 && deadline < until_ns) {
            until_ns = deadline;
        }
        struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                 .tv_nsec = (long)(until_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    tell();
    nanosleep(&(struct timespec){.tv_nsec = SAY_IT_NS}, NULL); // another rank may still be saying it
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

void watch_ranks(const struct group *group) {
    atomic_store(&watched, group);
}

// ---- what this rank does ------------------------------------------------------------------------

static void note_activity(enum phase phase, const char *name) {
    const struct group *group = atomic_load_explicit(&watched, memory_order_relaxed);
    atomic_store_explicit(&own_phase, phase, memory_order_relaxed);
    if (group == NULL) return;
    struct activity *activity = &group->control->activities[group->rank];
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
