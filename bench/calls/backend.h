// The interface of backends: the memory of calls, how a call is timed, and the candidates. host/backend.c is
// the one for CPUs, cuda/backend.c the one for GPUs. A program has one of them.
//
// A cell (cell.h) has the data and the reference in the host's memory. Its buffers have the data for the
// candidates: those of the cell itself on the host, a copy in device memory on a GPU. One sample times one
// call, or a chain of calls, each with its results in a slot of the buffers; all of them are checked.
#ifndef BENCH_BACKEND_H
#define BENCH_BACKEND_H

#include <stdio.h>

#include "cell.h"
#include "elements/strategy.h"
#include "plugin_services.h"
#include "ranks/group.h"

// Options of devices; the host has none.
struct device_options {
    bool loopback;            // all ranks on one device
    bool streams;             // with loopback: a launch for each rank, not one for all
    bool emulate_nvfp4;       // on GPUs that have no instructions for it
    bool no_programmatic;     // each launch begins after the end of the one ahead
    bool no_multicast;        // strategies that need it are unavailable
    bool shares_gpu;          // with loopback: ranks that are processes, too, with time slices of the device
    const char *only_handles; // of memory between processes: fabric, file or ipc; NULL: the first that works
    size_t workspace_bytes;   // the largest message; 0: the default
    size_t arena_bytes;       // for the data of calls; 0: the default
};

struct pass_input;

struct backend {
    const char *name;
    struct candidate *candidates;
    int *candidate_count;                   // plug-ins add to them
    const struct plugin_services *services; // for plug-ins
    bool modes[MODES];                      // the supported modes
    bool measures_skew;                     // by a clock that all ranks share
    bool includes_host_work;                // times include the host work before a launch
    int hang_timeouts;                      // timeouts until a hung rank is ended

    // For AUTO (measure/incumbent.c): the candidate that supports any call; and the suffix of the name of the
    // which-th module that may contain the incumbent's lookup, false if there are no more.
    const char *fallback;
    bool (*incumbent)(const struct group *group, int which, char suffix[], size_t suffix_size);

    // Why a candidate does not support a call, or NULL. The same on all ranks.
    const char *(*refusal)(const struct candidate *candidate, const struct group *group,
                           const struct call *call);

    // Collective. Measures the requests of the input in one pass. -1: see group_failure.
    int (*run_pass)(struct group *group, const struct pass_input *input);

    // The libraries and devices, as `library=` of the protocol; and the instruction set of its kernels. Needs
    // no group.
    void (*describe)(char library[], size_t library_size, char isa[], size_t isa_size);

    // Collective. Opens this rank's device. -1: `reason`, the same on all ranks, and nothing stays
    // open.
    int (*open)(struct group *group, const struct device_options *options, char reason[REASON_SIZE]);
    void (*close)(struct group *group);

    // This rank's device, for a line of the printed table; and, by rank 0, the protocol's lines on the
    // devices of all ranks.
    void (*describe_rank)(const struct group *group, char text[], size_t text_size);
    void (*write_devices)(const struct group *group, FILE *out);
    const char *(*placement)(const struct group *group); // a name of lists.placements

    // Collective. The round trip between two ranks in microseconds: it shows the state of the machine, and is
    // a bound of every call. -1: see group_failure.
    int (*round_trip)(struct group *group, double *time_us);

    // Collective. Opens the buffers of a cell for calls of `mode`. -1: `reason`, possibly only on some ranks.
    int (*open_buffers)(struct group *group, struct cell *cell, enum mode mode, void **buffers,
                        char reason[REASON_SIZE]);
    void (*close_buffers)(void *buffers);
    size_t (*buffer_bytes)(const struct shape *shape); // of the host's memory, beside the cell's

    // The call of data set `data_set` with its results in `slot`, for a candidate (NULL: the probe). It is in
    // place if the candidate works only so; its input is then copied there when a sample begins.
    struct call (*call)(void *buffers, const struct candidate *candidate, size_t data_set, int slot);
    int (*slots)(const void *buffers); // calls of a sample

    // Fills the results of all slots with ones, which no right result consists of.
    int (*poison)(void *buffers);

    // Collective. Times one sample of a candidate (NULL: the copy that bounds it). Its first call has data
    // set `data_set`, and each further one the next. The stamp is of one call. If the sample is not valid,
    // sets `reason`, the same on all ranks; else `reason` stays as it is. -1: see group_failure.
    int (*sample)(void *buffers, const struct candidate *candidate, void *state, size_t data_set,
                  struct stamp *stamp, char reason[REASON_SIZE]);

    // Collective. Waits until all calls are complete. -1: see group_failure.
    int (*finish)(void *buffers);

    // Copies a part of the results of a slot to the cell; and returns the hash of all, without that copy.
    int (*fetch)(void *buffers, int slot, struct cell_part part);
    uint64_t (*hash)(void *buffers, int slot);

    // Whether the results of a slot still have the hash that they had at the end of the last sample: a change
    // since then is a late write.
    bool (*is_unchanged)(void *buffers, int slot);

    // A lower bound in microseconds: the time of a candidate's call on the links between ranks; 0: none.
    double (*link_us)(const struct group *group, const struct candidate *candidate, const struct call *call);

    // Collective. Another lower bound: the time of calls like those of the last sample that do nothing; 0:
    // none. `reason` and the result are as in sample.
    int (*floor)(void *buffers, const struct candidate *candidate, void *state, double *time_us,
                 char reason[REASON_SIZE]);
};

// The backend of this program.
extern const struct backend *const backend;

static inline int candidate_count(void) {
    return *backend->candidate_count;
}

#endif
