// One rank's state of a plug-in; see plugin_rank.h.
#include "plugin_rank.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/backend.h"

enum { LOG_SIZE = 400 };

static struct plugin *_Atomic last_called[MAX_RANKS]; // by each rank of this process

void plugins_cancel(int rank) {
    struct plugin *plugin = atomic_load(&last_called[rank]);
    if (plugin != NULL) __atomic_store_n(&plugin->cancel[rank], 1, __ATOMIC_RELAXED);
}

void plugin_begin_call(struct plugin *plugin, struct group *group) {
    __atomic_store_n(&plugin->cancel[group->rank], 0, __ATOMIC_RELAXED);
    atomic_store(&last_called[group->rank], plugin);
    backend->services->enter(group);
}

bool plugin_is_cancelled(const struct plugin *plugin, int rank) {
    return __atomic_load_n(&plugin->cancel[rank], __ATOMIC_RELAXED) != 0;
}

// ---- callbacks ----------------------------------------------------------------------------------

// Collective callbacks are allowed outside of run, and in a run of a candidate with GT_FLAG_COLLECTIVE_RUN.
static bool may_call(struct instance *instance) {
    char text[FAILURE_SIZE];
    if (instance->in_run == NULL) return true;
    snprintf(text, sizeof text, "strategy %s: a collective callback in run without GT_FLAG_COLLECTIVE_RUN",
             instance->in_run);
    group_fail(instance->group, text);
    return false;
}

static int host_allgather(void *context, const void *in, void *out, size_t bytes) {
    struct instance *instance = context;
    if (!may_call(instance)) return -1;
    return backend->services->allgather(instance->services, in, out, bytes);
}

static int host_barrier(void *context) {
    struct instance *instance = context;
    return may_call(instance) ? backend->services->barrier(instance->services) : -1;
}

static void *host_allocate(void *context, size_t bytes, int shared) {
    struct instance *instance = context;
    char reason[REASON_SIZE];
    if (shared && !may_call(instance)) return NULL;
    if (shared && !group_is_on_one_node(instance->group, reason, sizeof reason)) return NULL;
    struct allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL) return NULL;
    size_t rounded = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    allocation->shared_bytes = shared ? rounded : 0;
    allocation->memory = shared ? group_map(instance->group, rounded, reason, sizeof reason)
                                : aligned_alloc(CACHE_LINE, rounded);
    if (allocation->memory == NULL) {
        free(allocation);
        return NULL;
    }
    if (!shared) memset(allocation->memory, 0, rounded);
    allocation->next = instance->allocations;
    instance->allocations = allocation;
    return allocation->memory;
}

static void host_free(void *context, void *memory) {
    struct instance *instance = context;
    for (struct allocation **at = &instance->allocations; *at != NULL; at = &(*at)->next) {
        struct allocation *found = *at;
        if (found->memory != memory) continue;
        *at = found->next;
        if (found->shared_bytes > 0)
            group_unmap(memory, found->shared_bytes);
        else
            free(memory);
        free(found);
        return;
    }
}

// Writes one line, with control characters as spaces, since all ranks write to one stream.
static void host_log(void *context, const char *line) {
    const struct instance *instance = context;
    char text[LOG_SIZE];
    snprintf(text, sizeof text, "%s", line == NULL ? "" : line);
    for (char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ') *at = ' ';
    }
    fprintf(stderr, "gentables-bench: log of %s, rank %d: %s\n", instance->plugin->name,
            instance->group->rank, text);
}

// ---- one rank's state ---------------------------------------------------------------------------

const char *plugin_error(const struct plugin *plugin, void *state) {
    const char *text = plugin->functions.error(state);
    return text == NULL || text[0] == '\0' ? "its error() returns no reason" : text;
}

static void fill_rank(struct instance *instance) {
    instance->host = (gt_host){.size = sizeof instance->host,
                               .context = instance,
                               .allgather = host_allgather,
                               .barrier = host_barrier,
                               .allocate = host_allocate,
                               .free = host_free,
                               .log = host_log,
                               .cancel = &instance->plugin->cancel[instance->group->rank]};
    instance->rank = (gt_rank){.size = sizeof instance->rank,
                               .rank = instance->group->rank,
                               .world_size = instance->group->size,
                               .local_rank = instance->group->rank, // a group is of one machine
                               .local_size = instance->group->size,
                               .threads = instance->group->shares_process,
                               .device = -1,
                               .host = &instance->host};
}

static void close_instance(struct instance *instance) {
    if (instance->services != NULL) backend->services->close(instance->services);
    free(instance);
}

// Whether init succeeded on this rank. *has_state: it made a state, maybe after its deadline.
static bool start_instance(struct instance *instance, bool *has_state, char reason[REASON_SIZE]) {
    struct group *group = instance->group;
    struct plugin *plugin = instance->plugin;
    fill_rank(instance);
    if (backend->services->open(group, plugin->comm, &instance->rank, &instance->services, reason) != 0)
        return false;
    plugin_begin_call(plugin, group);
    *has_state = plugin->functions.init(&instance->rank, &instance->state) == GT_OK;
    bool was_late = plugin_is_cancelled(plugin, group->rank);
    if (*has_state && !was_late) return true;
    snprintf(reason, REASON_SIZE, "its init failed: %s",
             was_late ? "did not return in time" : plugin_error(plugin, NULL));
    return false;
}

void plugin_end_instance(struct instance *instance) {
    plugin_begin_call(instance->plugin, instance->group);
    instance->plugin->functions.fini(instance->state);
    close_instance(instance);
}

// Collective. NULL: `reason`. fini is collective, so it is called only if all ranks have a state.
static struct instance *make_instance(struct plugin *plugin, struct group *group, char reason[REASON_SIZE]) {
    struct instance *instance = calloc(1, sizeof *instance);
    bool done = false, has_state = false;
    snprintf(reason, REASON_SIZE, "out of memory");
    if (group_min(group, instance != NULL) == 0) {
        free(instance);
        return NULL;
    }
    instance->plugin = plugin;
    instance->group = group;
    done = start_instance(instance, &has_state, reason);
    if (group_min(group, done) != 0) return instance;
    if (done) snprintf(reason, REASON_SIZE, "its init failed on another rank");
    if (group_min(group, has_state) != 0)
        plugin_end_instance(instance);
    else
        close_instance(instance);
    return NULL;
}

struct instance *plugin_open_instance(struct plugin *plugin, struct group *group, char reason[REASON_SIZE]) {
    int rank = group->rank;
    if (plugin->users[rank] == 0 && plugin->refusals[rank][0] == '\0') {
        plugin->instances[rank] = make_instance(plugin, group, plugin->refusals[rank]);
        if (plugin->instances[rank] != NULL) plugin->refusals[rank][0] = '\0';
    }
    snprintf(reason, REASON_SIZE, "%s", plugin->refusals[rank]);
    if (reason[0] != '\0') return NULL;
    plugin->users[rank]++;
    return plugin->instances[rank];
}
