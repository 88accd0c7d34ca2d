// Replays an op: has a library compute it, or all that can, checks the result, and times calls with cold and
// with warm caches.
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "compute_device.h"
#include "elements/statistics.h"

enum { NOTE_SIZE = 512 };

// What can compute here.
struct host {
    const struct machine *machine;
    int threads;
    bool tries_all; // of several libraries the fastest is timed; else the first
    int library_count;
    const struct library *libraries[MOST_LIBRARIES];
    bool is_open[MOST_LIBRARIES];
    char absent[MOST_LIBRARIES][REASON_SIZE]; // why one is not open
};

// Loads what there is on a machine. Call it before there are threads. -1, with a reason: the machine is not
// there.
int host_open(struct host *host, const struct machine *machine, int threads, bool tries_all,
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
    // Of the algorithms that the library offers: those that were timed, the fastest, and how many times
    // as fast as the library's own choice it is, in turns with it. Times are of that choice.
    int offered, algorithms, fastest;
    bool is_compared; // there is a gain
    struct summary gain;
    char note[NOTE_SIZE]; // what has to be known of the times; "": nothing
};

// -1, with a reason: the op has no time here.
int replay_op(const struct host *host, const struct op *op, struct replayed *to, char reason[REASON_SIZE]);

#endif
