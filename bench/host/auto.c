// AUTO: the call through the lookup of the table that is there, its cost included, as a program makes it
// that uses the table. It says what a new table could win, and is no candidate itself.
//
// The lookup is the header of that table, in a module (incumbent/incumbent.c) beside the program; another
// one can be named in GENTABLES_INCUMBENT. Each strategy that it may choose is set up as for itself.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/group.h"
#include "strategy.h"

enum { PATH_SIZE = 4096 };
static const char FALLBACK[] = "MPI"; // of the archs of this backend in generator/lists.lua

struct automatic {
    struct group *group;
    int count, fallback; // strategies that the lookup may choose, and which of them can do any call
    void *module;
    int (*choose)(int tp_size, int fusion, int hidden_size, int num_tokens);
    const struct candidate *chosen[MAX_CANDIDATES];
    void *states[MAX_CANDIDATES];
};

// Where the module is: "" if the program cannot tell.
static void find_module(char path[PATH_SIZE]) {
    const char *named = getenv("GENTABLES_INCUMBENT");
    if (named != NULL) {
        snprintf(path, PATH_SIZE, "%s", named);
        return;
    }
    static const char file[] = "gentables_incumbent.so";
    ssize_t length = readlink("/proc/self/exe", path, PATH_SIZE - sizeof file);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) memcpy(slash + 1, file, sizeof file);
}

extern const struct strategy strategy_auto;

// One of the list's, but AUTO itself.
static const struct candidate *find_candidate(const char *name) {
    for (int i = 0; i < host_candidate_count; i++) {
        const struct candidate *candidate = &host_candidates[i];
        bool may_be = candidate->plugin == NULL && candidate->strategy != &strategy_auto;
        if (may_be && strcmp(candidate->name, name) == 0) return candidate;
    }
    return NULL;
}

static void close_all(struct automatic *automatic) {
    for (int i = 0; i < automatic->count; i++) {
        automatic->chosen[i]->strategy->teardown(automatic->states[i]);
    }
    if (automatic->module != NULL) dlclose(automatic->module);
    free(automatic);
}

// Sets up all strategies that the lookup knows.
static int open_chosen(struct automatic *automatic, struct group *group, char reason[REASON_SIZE]) {
    const char *(*name_of)(int) = NULL;
    *(void **)&name_of = dlsym(automatic->module, "incumbent_name");
    *(void **)&automatic->choose = dlsym(automatic->module, "incumbent_choose");
    if (name_of == NULL || automatic->choose == NULL) {
        snprintf(reason, REASON_SIZE, "the incumbent's module lacks its functions");
        return -1;
    }
    for (int i = 0; i < MAX_CANDIDATES && strcmp(name_of(i), "unknown") != 0; i++) {
        const struct candidate *candidate = find_candidate(name_of(i));
        if (candidate == NULL) {
            snprintf(reason, REASON_SIZE, "the incumbent's table has %.60s, which is not here", name_of(i));
            return -1;
        }
        if (candidate->strategy->setup(candidate, group, &automatic->states[i], reason) != 0) return -1;
        automatic->chosen[i] = candidate;
        automatic->count = i + 1;
        if (strcmp(candidate->name, FALLBACK) == 0) automatic->fallback = i;
    }
    if (automatic->count > 0 && strcmp(automatic->chosen[automatic->fallback]->name, FALLBACK) == 0) return 0;
    snprintf(reason, REASON_SIZE, "the incumbent's table does not fall back on %s", FALLBACK);
    return -1;
}

static int auto_setup(const struct candidate *candidate, struct group *group, void **state,
                      char reason[REASON_SIZE]) {
    (void)candidate;
    char path[PATH_SIZE];
    struct automatic *automatic = group_allocate(group, sizeof *automatic, reason, REASON_SIZE);
    if (automatic == NULL) return -1;
    automatic->group = group;
    find_module(path);
    automatic->module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (group_min(group, automatic->module != NULL) == 0) {
        snprintf(reason, REASON_SIZE, "no incumbent: no table was there when the bench was built");
    } else if (open_chosen(automatic, group, reason) == 0) {
        *state = automatic;
        return 0;
    }
    close_all(automatic);
    return -1;
}

// A cell answers for shapes around it, among which are some that its strategy cannot do.
static int choose(const struct automatic *automatic, const struct call *call) {
    int place = automatic->choose(automatic->group->size, (int)call->fusion, (int)call->hidden_size,
                                  (int)call->num_tokens);
    const struct strategy *strategy = automatic->chosen[place]->strategy;
    return strategy->supports(automatic->group, call) == NULL ? place : automatic->fallback;
}

static const char *auto_supports(const struct group *group, const struct call *call) {
    (void)group;
    return call->num_tokens > INT32_MAX || call->hidden_size > INT32_MAX ? "sizes beyond the lookup's" : NULL;
}

static int auto_run(void *state, const struct call *call) {
    const struct automatic *automatic = state;
    int place = choose(automatic, call);
    return automatic->chosen[place]->strategy->run(automatic->states[place], call);
}

static void auto_teardown(void *state) {
    close_all(state);
}

const struct strategy strategy_auto = {
    .supports = auto_supports,
    .setup = auto_setup,
    .run = auto_run,
    .teardown = auto_teardown,
};
