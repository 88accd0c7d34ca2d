// Replays an op: computes it by one library, or by all that support it, checks the result, and times calls
// with cold and with warm caches.
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "compute_device.h"
#include "elements/statistics.h"

enum { NOTE_SIZE = 512 };

// The device and the libraries of a replay.
struct replay_setup {
    const struct compute_device *device;
    int threads;
    bool tries_all; // time the fastest of several libraries; else the first
    int library_count;
    const struct library *libraries[MOST_LIBRARIES];
    bool is_open[MOST_LIBRARIES];
    char absent[MOST_LIBRARIES][REASON_SIZE]; // why one is not open
};

// Opens a device and loads its libraries. Call it before threads are started. -1, with a reason: there is no
// such device.
int replay_open(struct replay_setup *setup, const struct compute_device *device, int threads, bool tries_all,
                char reason[REASON_SIZE]);

// Calls of one kind. Other tools report the mean; the interval is that of the median.
struct timed {
    double mean_us;
    struct summary us;
};

struct replayed {
    const char *library;
    enum data_type computed; // the type that was computed in
    char kernel[96];
    struct timed warm, cold;
    bool is_partial; // gradients of a backward convolution were left out
    double empty_us; // a kernel that does nothing, timed as a warm call; the median. 0: none was timed
    // The library's algorithms: how many it offers, how many were timed, the fastest of them, and by what
    // factor it is faster than the library's choice, timed in turns. The times above are of that choice.
    int offered, algorithms, fastest;
    bool is_compared; // `gain` is valid
    struct summary gain;
    char note[NOTE_SIZE]; // limitations of the times; "": none
};

// Replays one op. -1, with a reason: it could not be timed.
int replay_op(const struct replay_setup *setup, const struct op *op, struct replayed *to,
              char reason[REASON_SIZE]);

#endif
