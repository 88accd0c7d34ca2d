// A loaded library and its candidates. Private to this folder.
#ifndef BENCH_PLUGIN_STATE_H
#define BENCH_PLUGIN_STATE_H

#include "elements/strategy.h"
#include "plugins/plugin.h"
#include "ranks/group.h"

struct plugin_candidate {
    struct plugin *plugin;
    uint32_t index;
    gt_candidate declared;
    bool has_epilogue_apart;
    char name[80], work[80];
};

struct plugin {
    char path[256], name[61]; // gt_plugin's name, or the file's
    uint64_t hash;
    gt_plugin functions;
    struct plugin_candidate *candidates;
    unsigned comm;                         // kind of communicator that a candidate needs; 0: none
    struct instance *instances[MAX_RANKS]; // of the ranks of this process, while a candidate is set up
    int users[MAX_RANKS];
    char refusals[MAX_RANKS][REASON_SIZE]; // why its init failed, which is then not called again; or ""
    volatile int32_t cancel[MAX_RANKS];    // gt_host.cancel of each rank
};

#endif
