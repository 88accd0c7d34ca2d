// Finds the rank that holds the others up; see culprit.h.
//
// A rank that is stopped or gone according to /proc is the culprit. Else it is the rank that has reached
// fewer barriers than others, or a rank that sleeps, since ranks that wait here or in MPI spin. Before the
// ranks share memory they are found as children of one launcher, which sets the rank's number in their
// environment.
#include "culprit.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation_process.h"

enum { CHECKS = 5, CHECK_EVERY_NS = 2000000 };

static _Atomic(const struct group *) ranks; // the possible culprits

void culprit_among(const struct group *group) {
    atomic_store(&ranks, group);
}

const struct group *culprit_group(void) {
    return atomic_load_explicit(&ranks, memory_order_relaxed);
}

// ---- /proc --------------------------------------------------------------------------------------

bool culprit_is_stopped(char state) {
    return state == 'T' || state == 't';
}

static bool is_asleep(char state) {
    return state == 'S' || state == 'D';
}

int culprit_rank_of(int pid) {
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

// The launcher of a rank that has this parent: the parent, or with isolation processes the parent's parent.
static int starter(int parent) {
    int of_parent = -1;
    if (!is_isolated()) return parent;
    process_state(parent, &of_parent);
    return of_parent;
}

int culprit_stopped_sibling(void) {
    DIR *folder = opendir("/proc");
    int found = -1;
    for (struct dirent *entry; folder != NULL && found < 0 && (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        int pid = (int)strtol(entry->d_name, NULL, 10), parent = -1;
        if (!culprit_is_stopped(process_state(pid, &parent))) continue;
        if (starter(parent) == starter(getppid())) found = culprit_rank_of(pid);
    }
    if (folder != NULL) closedir(folder);
    return found;
}

// ---- the culprit --------------------------------------------------------------------------------

void culprit_phase(enum phase phase, const char *name, char text[], size_t size) {
    static const char *const descriptions[] = {
        [PHASE_START] = "at the start",     [PHASE_SET_UP] = "in the set-up", [PHASE_IDLE] = "between cells",
        [PHASE_WARM_UP] = "in the warm-up", [PHASE_TIMED] = "in timed calls", [PHASE_TEARDOWN] = "at the end",
        [PHASE_TRIAL] = "in the trial",     [PHASE_PASS] = "in the pass",
    };
    bool is_known = phase <= PHASE_PASS; // the peer's memory may be damaged
    snprintf(text, size, "%s%s%s", is_known ? descriptions[phase] : "in an unknown phase",
             name[0] != '\0' ? " of " : "", name);
}

static void write_activity(const struct activity *activity, char text[], size_t size) {
    uint64_t words[ACTIVITY_WORDS + 1] = {0};
    for (int i = 0; i < ACTIVITY_WORDS; i++) {
        words[i] = atomic_load_explicit(&activity->name[i], memory_order_relaxed);
    }
    culprit_phase(atomic_load_explicit(&activity->phase, memory_order_relaxed), (const char *)words, text,
                  size);
}

static uint32_t barriers_of(const struct group *group, int rank) {
    return atomic_load_explicit(&group->control->of[rank].arrived.value, memory_order_relaxed);
}

// A rank of this node that has reached fewer barriers than another one; -1: none.
static int last_rank(const struct group *group) {
    int last = group->local[0], first = last;
    for (int i = 1; i < group->ranks_per_node; i++) {
        int rank = group->local[i];
        if (!counter_reached(barriers_of(group, rank), barriers_of(group, last))) last = rank;
        if (!counter_reached(barriers_of(group, first), barriers_of(group, rank))) first = rank;
    }
    return barriers_of(group, last) == barriers_of(group, first) ? -1 : last;
}

// Stays awake, since a sleeping rank would look like the culprit to others.
static void wait_awake(uint64_t ns) {
    uint64_t since_ns = clock_ns();
    while (clock_ns() - since_ns < ns) sched_yield();
}

// The first rank of this node that is gone or stopped; else one that is behind; else one that sleeps in most
// of the checks, since a spinning rank may sleep for a moment, and a sleeping one may wake up. -1: none.
static int find_culprit(const struct group *group, int caller, char *state) {
    int asleep[MAX_NODE_RANKS] = {0}, unused;
    for (int check = 0; check < CHECKS; check++) {
        if (check > 0) wait_awake(CHECK_EVERY_NS);
        for (int i = 0; i < group->ranks_per_node; i++) {
            int rank = group->local[i];
            *state = process_state(group->control->of[rank].pid, &unused);
            if (*state == PROCESS_GONE || (culprit_is_stopped(*state) && rank != caller)) return rank;
            asleep[i] += is_asleep(*state);
        }
    }
    *state = 'R';
    int last = last_rank(group);
    if (last >= 0 && last != caller) return last;
    for (int i = 0; i < group->ranks_per_node; i++) {
        if (2 * asleep[i] > CHECKS) return group->local[i];
    }
    return -1;
}

int culprit_name(const struct group *group, int caller, char *state, char text[], size_t size) {
    char phase[80];
    int culprit = find_culprit(group, caller, state);
    write_activity(&group->control->of[culprit >= 0 ? culprit : caller].activity, phase, sizeof phase);
    const char *verb = *state == PROCESS_GONE ? "died" : culprit_is_stopped(*state) ? "is stopped" : "hangs";
    if (culprit >= 0) {
        snprintf(text, size, "rank %d %s, %s", culprit, verb, phase);
    } else if (group->nodes > 1) {
        snprintf(text, size, "a rank of another node, or the link to it, does not respond, %s", phase);
    } else {
        snprintf(text, size, "no rank responds, %s", phase);
    }
    return culprit;
}
