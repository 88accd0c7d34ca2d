// Replays an op: has a library compute it, or all that can, checks the result, and times calls with cold and
// with warm caches.
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "library.h"
#include "statistics.h"

enum { LIBRARIES = 2, NOTE_SIZE = 512 };

// What can compute here.
struct host {
    int threads;
    bool tries_all; // of several libraries the fastest is timed; else the first
    const struct library *libraries[LIBRARIES];
    bool is_open[LIBRARIES];
    char absent[LIBRARIES][REASON_SIZE]; // why one is not open
};

// Loads what there is. Call it before there are threads.
void host_open(struct host *host, int threads, bool tries_all);

// Calls of one kind. The mean is what the known tools tell; the interval is that of the median.
struct timed {
    double mean_us;
    struct summary us;
};

struct replayed {
    const char *library;
    enum data_type computed; // the type that was computed in
    char kernel[96];
    struct timed warm, cold;
    char note[NOTE_SIZE]; // what has to be known of the times; "": nothing
};

// -1, with a reason: the op has no time here.
int replay_op(const struct host *host, const struct op *op, struct replayed *to, char reason[REASON_SIZE]);

#endif
