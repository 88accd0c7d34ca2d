// One rank's state of a plug-in from init to fini, and its callbacks.
#ifndef BENCH_PLUGIN_RANK_H
#define BENCH_PLUGIN_RANK_H

#include "plugin_state.h"

struct instance {
    struct plugin *plugin;
    struct group *group;
    void *services; // the state of the backend's services for it
    gt_host host;
    gt_rank rank;
    const char *in_run; // name of the running candidate, if it has no GT_FLAG_COLLECTIVE_RUN; or NULL
    void *state;
    struct allocation {
        void *memory;
        size_t shared_bytes; // 0: private
        struct allocation *next;
    } * allocations;
};

// Collective. The first candidate of a plug-in calls init, the others share the instance, or the reason why
// there is none. NULL: `reason`.
struct instance *plugin_open_instance(struct plugin *plugin, struct group *group, char reason[REASON_SIZE]);

// Collective. Calls fini, and frees the instance.
void plugin_end_instance(struct instance *instance);

// Call it before each call of a library: resets the cancel flag, and sets the device.
void plugin_begin_call(struct plugin *plugin, struct group *group);

// Whether the call that has just returned was cancelled.
bool plugin_is_cancelled(const struct plugin *plugin, int rank);

// Cancels the last call that this rank, of this process, made to a library.
void plugins_cancel(int rank);

// Why its last call failed; `state` is NULL if init failed.
const char *plugin_error(const struct plugin *plugin, void *state);

#endif
