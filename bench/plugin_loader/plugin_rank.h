// One rank's state of a plug-in, from init to fini, and what its callbacks need.
#ifndef BENCH_PLUGIN_RANK_H
#define BENCH_PLUGIN_RANK_H

#include "plugin_state.h"

struct instance {
    struct plugin *plugin;
    struct group *group;
    void *services; // its own state of them
    gt_host host;
    gt_rank rank;
    const char *in_run; // the name of one that runs, and has not declared collective calls there; or NULL
    void *state;
    struct allocation {
        void *memory;
        size_t shared_bytes; // 0: private
        struct allocation *next;
    } * allocations;
};

// Collective, as init is. The first candidate of a plug-in makes it, the others share it, or why there is
// none.
struct instance *plugin_open_instance(struct plugin *plugin, struct group *group, char reason[REASON_SIZE]);
void plugin_end_instance(struct instance *instance);

// Before each call of a library: what it was told of an earlier one is over.
void plugin_begin_call(struct plugin *plugin, struct group *group);

// Whether the library was told to end the call that it has come back from.
bool plugin_is_cancelled(const struct plugin *plugin, int rank);

// Tells the library that a rank of this process called last that this work is no longer wanted.
void plugins_cancel(int rank);

// Why its last call failed; `state` is NULL where init failed.
const char *plugin_error(const struct plugin *plugin, void *state);

#endif
