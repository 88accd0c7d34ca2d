// Stages of the self-test of a backend's machine. start/self_test.c runs them one after the other, each in a
// process of its own with a deadline, and prints a line for each.
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

#include <stdbool.h>

#include "backend.h"

enum { FINDING_SIZE = 320, STEP_SIZE = 96, NOTES_SIZE = 4096 };

// How a stage ends. Ranks may differ; the largest counts.
enum stage_end { STAGE_OK, STAGE_SKIPPED, STAGE_FAILED, STAGE_NO_DEVICE, STAGE_UNDECIDED };

// What the stages find, in memory that their processes share. The first stage sets the first two members.
struct findings {
    int devices;
    int ranks;               // of stages with threads
    enum stage_end end;      // of this stage, as the following members
    char text[FINDING_SIZE]; // its line
    char step[STEP_SIZE];    // its current work, for the message after a deadline
    char notes[NOTES_SIZE];  // further lines, if it failed
};

struct stage {
    const char *name;
    double deadline_s;
    const char *remedy; // how to run the bench without what failed; NULL: not possible
    // Options that the stage adds to those of the command line.
    struct device_options options;
    bool has_processes; // its ranks are two processes; else threads
    // Exactly one of both is set. `alone` has no ranks and no open device. `on_rank` runs on each rank, and
    // is collective, unless the group has failed.
    enum stage_end (*alone)(struct findings *findings);
    enum stage_end (*on_rank)(struct group *group, const struct stage *stage, struct findings *findings);
};

// The backend's stages, up to one without a name; a backend without a self-test has none.
extern const struct stage self_test_stages[];

#endif
