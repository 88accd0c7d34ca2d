// What a backend is: where the data of calls live, how a call is timed, which candidates there are. A struct
// of functions: host/backend.c has the one for CPUs, cuda/backend.c the one for GPUs. A program has one of
// them; who uses it knows no other.
//
// A cell (cell.h) holds the data and the truth in the host's memory. Its place is where candidates find the
// data: the cell itself on the host, a copy in device memory on a GPU. One sample times one call there, or a
// chain of calls, each with results of its own in a slot of the place; all of them are checked.
#ifndef BENCH_BACKEND_H
#define BENCH_BACKEND_H

#include <stdio.h>

#include "cell.h"
#include "elements/strategy.h"
#include "plugin_services.h"
#include "ranks/group.h"

// What a command line says of devices; the host has nothing to choose.
struct device_options {
    bool loopback;          // all ranks on one device
    bool streams;           // there, one launch for each rank, and not one for all
    bool emulate_nvfp4;     // on GPUs that have no instructions for it
    size_t workspace_bytes; // the largest message; 0: the usual one
    size_t arena_bytes;     // of the data of calls; 0: the usual ones
};

struct tune_plan;

struct backend {
    const char *name;
    struct candidate *candidates;
    int *candidate_count;                   // plug-ins add to them
    const struct plugin_services *services; // what plug-ins are given
    bool modes[MODES];                      // how it can time calls
    bool tells_skew;                        // by a clock that all ranks share
    bool sees_host;                         // a time holds what a strategy does before it launches
    int last_resort; // times the group's patience, until a rank that does not come back is ended

    // For AUTO (measure/incumbent.c): the candidate that can do any call; and the end of the name of the
    // which-th module that may hold the incumbent's lookup here, false when there are no more.
    const char *fallback;
    bool (*incumbent)(const struct group *group, int which, char suffix[], size_t suffix_size);

    // Why a candidate cannot do a call, or NULL. Alike on all ranks.
    const char *(*refusal)(const struct candidate *candidate, const struct group *group,
                           const struct call *call);

    // Collective. Measures a plan in one pass (trial/plans.h): 0, or -1: see group_failure.
    int (*tune)(struct group *group, const struct tune_plan *plan);

    // Which libraries and devices there are, as `library=` of the protocol; and the instruction set of its
    // kernels. Needs no group.
    void (*describe)(char library[], size_t library_size, char isa[], size_t isa_size);

    // Collective. Takes what this rank runs on. -1: `reason`, alike on all ranks, and nothing is held.
    int (*open)(struct group *group, const struct device_options *options, char reason[REASON_SIZE]);
    void (*close)(struct group *group);

    // This rank's device, as a line of the table by hand has it; and, by rank 0, what the protocol says of
    // all ranks' devices, in lines of their own.
    void (*describe_rank)(const struct group *group, char words[], size_t words_size);
    void (*write_devices)(const struct group *group, FILE *out);
    const char *(*placement)(const struct group *group); // a name of lists.placements

    // Collective. How long two ranks take to tell each other something, in microseconds: the regime that the
    // machine is in, and a bound of every call. -1: see group_failure.
    int (*round_trip)(struct group *group, double *time_us);

    // Collective. Places a cell for calls of `mode`. -1: `reason`, maybe not on all ranks.
    int (*place)(struct group *group, struct cell *cell, enum mode mode, void **place,
                 char reason[REASON_SIZE]);
    void (*displace)(void *place);
    size_t (*place_bytes)(const struct shape *shape); // of the host's memory, beside the cell's

    // The call of data set `shift` whose results go to `slot`, for a candidate (NULL: the probe): in place,
    // where it works nowhere else, and then its input is there once a sample begins.
    struct call (*call)(void *place, const struct candidate *candidate, size_t shift, int slot);
    int (*slots)(const void *place); // calls of a sample

    // The results of all slots become ones, which no right result is full of.
    int (*poison)(void *place);

    // Collective. Times one sample of a candidate (NULL: the copy that bounds it), whose first call has data
    // set `shift`, and each further one the next. The stamp is of one call. Where what was timed is something
    // else, `reason` says so, alike on all ranks; else it stays as it is. -1: see group_failure.
    int (*sample)(void *place, const struct candidate *candidate, void *state, size_t shift,
                  struct stamp *stamp, char reason[REASON_SIZE]);

    // Collective. Waits until all that was called is complete. -1: see group_failure.
    int (*finish)(void *place);

    // Brings the results of a slot into the cell; and their hash, wherever they are.
    int (*fetch)(void *place, int slot);
    uint64_t (*hash)(void *place, int slot);

    // Whether they still have the hash that they had when the last sample's calls were over. What changed
    // since came too late.
    bool (*stays)(void *place, int slot);

    // What a candidate's call takes at least on the links between ranks; and what the last sample's calls
    // would have taken had they done nothing, with `reason` as above. Microseconds; 0: no such thing.
    double (*link_us)(const struct group *group, const struct candidate *candidate, const struct call *call);
    int (*floor)(void *place, const struct candidate *candidate, void *state, double *time_us,
                 char reason[REASON_SIZE]);
};

// The one of this program.
extern const struct backend *const backend;

static inline int candidate_count(void) {
    return *backend->candidate_count;
}

#endif
