// AUTO: a call through the lookup of the incumbent table, with its cost, as programs that use the table make
// it. It shows what a new table could gain, and is never a winner itself.
//
// The lookup is the header of that table, in a module (made from templates/incumbent) beside the program, or
// the one that GENTABLES_INCUMBENT names. Each strategy that it may choose is set up as if it were measured
// itself. A strategy that is unavailable, or does not support a call, is replaced by the backend's fallback,
// as programs do. If the backend's clock does not include the host, the host's time in the lookup is reported
// separately (unseen_ns in group_state.h). A graph contains the chosen strategy, and its calls do not look up
// again.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls/backend.h"

enum { PATH_SIZE = 4096, SUFFIX_SIZE = 64, CLOCK_TRIES = 64 };

// A strategy that the lookup may choose.
struct choice {
    const struct candidate *candidate;
    void *state; // NULL: it is unavailable, for `reason`
    char reason[REASON_SIZE];
};

// A cell for which its strategy could not be prepared.
struct refused {
    enum dtype dtype;
    enum fusion fusion;
    size_t num_tokens, hidden_size;
};

struct automatic {
    struct group *group;
    int count, fallback; // of choices; the index of the one that supports any call
    void *module;
    int (*choose)(int tp_size, int fusion, int hidden_size, int num_tokens);
    struct choice choices[MAX_CANDIDATES + 1];
    struct refused *refused;
    size_t refused_count;
    uint64_t clock_ns; // cost of two readings of the clock
};

extern const struct strategy strategy_auto;

// ---- the module ---------------------------------------------------------------------------------

// Opens the module that GENTABLES_INCUMBENT names, or the one beside the program; NULL: there is none.
static void *open_module(const struct group *group) {
    char path[PATH_SIZE], suffix[SUFFIX_SIZE];
    const char *named = getenv("GENTABLES_INCUMBENT");
    if (named != NULL) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    void *module = NULL;
    for (int which = 0; module == NULL && backend->incumbent(group, which, suffix, sizeof suffix); which++) {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        char *slash = strrchr(path, '/');
        if (slash == NULL) return NULL;
        size_t left = sizeof path - (size_t)(slash + 1 - path);
        int needed = snprintf(slash + 1, left, "gentables_incumbent%s.so", suffix);
        if ((size_t)needed < left) module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return module;
}

// ---- the choices --------------------------------------------------------------------------------

// A strategy of the list, except AUTO itself.
static const struct candidate *find_candidate(const char *name) {
    for (int i = 0; i < candidate_count(); i++) {
        const struct candidate *candidate = &backend->candidates[i];
        bool may_be = candidate->plugin == NULL && candidate->strategy != &strategy_auto;
        if (may_be && strcmp(candidate->name, name) == 0) return candidate;
    }
    return NULL;
}

static void close_all(struct automatic *automatic) {
    for (int i = 0; i < automatic->count; i++) {
        struct choice *choice = &automatic->choices[i];
        if (choice->state != NULL) choice->candidate->strategy->teardown(choice->state);
    }
    if (automatic->module != NULL) dlclose(automatic->module);
    free(automatic->refused);
    free(automatic);
}

static void add_choice(struct automatic *automatic, const struct candidate *candidate) {
    struct choice *choice = &automatic->choices[automatic->count];
    choice->candidate = candidate;
    bool made = candidate->strategy->setup(candidate, automatic->group, &choice->state, choice->reason) == 0;
    if (!made) choice->state = NULL;
    if (strcmp(candidate->name, backend->fallback) == 0) automatic->fallback = automatic->count;
    automatic->count++;
}

// Sets up all strategies that the lookup may return, and the fallback. -1: `reason`.
static int open_choices(struct automatic *automatic, char reason[REASON_SIZE]) {
    const char *(*name_of)(int) = NULL;
    *(void **)&name_of = dlsym(automatic->module, "incumbent_name");
    *(void **)&automatic->choose = dlsym(automatic->module, "incumbent_choose");
    if (name_of == NULL || automatic->choose == NULL) {
        snprintf(reason, REASON_SIZE, "the incumbent's module lacks its functions");
        return -1;
    }
    automatic->fallback = -1;
    for (int i = 0; i < MAX_CANDIDATES && strcmp(name_of(i), "unknown") != 0; i++) {
        const struct candidate *candidate = find_candidate(name_of(i));
        if (candidate == NULL) {
            snprintf(reason, REASON_SIZE, "the incumbent's table has %.60s, which this bench lacks",
                     name_of(i));
            return -1;
        }
        add_choice(automatic, candidate);
    }
    if (automatic->fallback < 0) add_choice(automatic, find_candidate(backend->fallback));
    return 0;
}

// ---- the lookup ---------------------------------------------------------------------------------

static int look_up(const struct automatic *automatic, const struct call *call) {
    return automatic->choose(automatic->group->size, (int)call->fusion, (int)call->hidden_size,
                             (int)call->num_tokens);
}

// The smallest difference between two readings of the clock.
static uint64_t clock_cost(void) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t before = clock_ns(), apart = clock_ns() - before;
        if (apart < least) least = apart;
    }
    return least;
}

static int timed_look_up(const struct automatic *automatic, const struct call *call) {
    uint64_t before = clock_ns();
    int index = look_up(automatic, call);
    uint64_t took = clock_ns() - before;
    automatic->group->unseen_ns = took > automatic->clock_ns ? took - automatic->clock_ns : 0;
    return index;
}

// ---- refused cells ------------------------------------------------------------------------------

// The index of a cell among the refused ones, or their number.
static size_t find_refused(const struct automatic *automatic, const struct call *call) {
    size_t i = 0;
    for (; i < automatic->refused_count; i++) {
        const struct refused *at = &automatic->refused[i];
        if (at->num_tokens == call->num_tokens && at->hidden_size == call->hidden_size &&
            at->fusion == call->fusion && at->dtype == call->dtype)
            break;
    }
    return i;
}

static bool remember_refused(struct automatic *automatic, const struct call *call) {
    if (find_refused(automatic, call) < automatic->refused_count) return true;
    size_t size = (automatic->refused_count + 1) * sizeof *automatic->refused;
    struct refused *grown = realloc(automatic->refused, size);
    if (grown == NULL) return false;
    automatic->refused = grown;
    grown[automatic->refused_count++] =
        (struct refused){call->dtype, call->fusion, call->num_tokens, call->hidden_size};
    return true;
}

static void forget_refused(struct automatic *automatic, const struct call *call) {
    size_t i = find_refused(automatic, call);
    if (i < automatic->refused_count) automatic->refused[i] = automatic->refused[--automatic->refused_count];
}

// Why a strategy does not support a call, or NULL.
static const char *refusal_of(const struct automatic *automatic, const struct choice *choice,
                              const struct call *call) {
    return choice->state == NULL ? choice->reason
                                 : choice->candidate->strategy->supports(automatic->group, call);
}

// Collective. Prepares a strategy for a call. -1: `reason`.
static int prepare_choice(struct automatic *automatic, struct choice *choice, const struct call *call,
                          char reason[REASON_SIZE]) {
    const struct strategy *strategy = choice->candidate->strategy;
    const char *refusal = refusal_of(automatic, choice, call);
    if (refusal == NULL)
        return strategy->prepare == NULL || strategy->prepare(choice->state, call, reason) == 0 ? 0 : -1;
    snprintf(reason, REASON_SIZE, "%s: %.110s", choice->candidate->name, refusal);
    return -1;
}

// The strategy for a call for which the lookup returned `index`. Calls of many cells may come in any order.
static const struct choice *choice_for(const struct automatic *automatic, int index,
                                       const struct call *call) {
    const struct choice *asked = &automatic->choices[index];
    bool can = refusal_of(automatic, asked, call) == NULL &&
               find_refused(automatic, call) == automatic->refused_count;
    return can ? asked : &automatic->choices[automatic->fallback];
}

// ---- the functions of a strategy ----------------------------------------------------------------

static const char *auto_supports(const struct group *group, const struct call *call) {
    (void)group;
    return call->num_tokens > INT32_MAX || call->hidden_size > INT32_MAX ? "sizes beyond the lookup's" : NULL;
}

static int auto_setup(const struct candidate *candidate, struct group *group, void **state,
                      char reason[REASON_SIZE]) {
    (void)candidate;
    struct automatic *automatic = group_allocate(group, sizeof *automatic, reason, REASON_SIZE);
    if (automatic == NULL) return -1;
    automatic->group = group;
    automatic->clock_ns = clock_cost();
    automatic->module = open_module(group);
    if (group_min(group, automatic->module != NULL) == 0) {
        snprintf(reason, REASON_SIZE,
                 "no incumbent: the bench was built without a table; name one with gentables sweep "
                 "--incumbent HEADER");
    } else if (open_choices(automatic, reason) == 0) {
        *state = automatic;
        return 0;
    }
    close_all(automatic);
    return -1;
}

// A cell of the table applies to a range of shapes; its strategy may not support some of them.
static int auto_prepare(void *state, const struct call *call, char reason[REASON_SIZE]) {
    struct automatic *automatic = state;
    char why[REASON_SIZE];
    int index = look_up(automatic, call);
    if (index < 0 || index >= automatic->count) {
        snprintf(reason, REASON_SIZE, "the incumbent's table chooses a strategy that this bench lacks");
        return -1;
    }
    struct choice *asked = &automatic->choices[index];
    if (prepare_choice(automatic, asked, call, reason) == 0) {
        forget_refused(automatic, call);
        return 0;
    }
    if (refusal_of(automatic, asked, call) == NULL && !remember_refused(automatic, call)) return -1;
    return prepare_choice(automatic, &automatic->choices[automatic->fallback], call, why);
}

static int auto_run(void *state, const struct call *call) {
    struct automatic *automatic = state;
    int index = backend->includes_host_work ? look_up(automatic, call) : timed_look_up(automatic, call);
    if (index < 0 || index >= automatic->count) {
        group_fail(automatic->group, "the incumbent's table chooses a strategy that this bench lacks");
        return -1;
    }
    const struct choice *choice = choice_for(automatic, index, call);
    return choice->candidate->strategy->run(choice->state, call);
}

static void auto_teardown(void *state) {
    close_all(state);
}

const struct strategy strategy_auto = {
    .supports = auto_supports,
    .setup = auto_setup,
    .run = auto_run,
    .teardown = auto_teardown,
    .prepare = auto_prepare,
};
