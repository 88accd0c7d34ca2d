// Chooses the cheaper kind of stores; see shared_copy.h.
#include "shared_copy.h"

#include <string.h>

enum {
    LEAST_BYTES = 4 << 10, // smaller copies are not timed, and never stream
    PROBE_EVERY = 64,      // one of so many copies tries the other kind of stores
    TIME_EVERY = 8,        // one of so many copies is timed
};

// Streaming makes readers read from memory, so writing must be cheaper by this factor.
static const double STREAMING_GAIN = 2;
static const double MOST_RAISE = 1.25; // the factor by which a timed copy may raise an estimate

void handover_begin(struct handover *handover, const struct group *group) {
    *handover = (struct handover){.kernels = group->kernels, .tries = group->size > 2};
}

static bool streaming_is_cheaper(const struct handover *handover) {
    return handover->ns_per_byte[true] > 0 &&
           handover->ns_per_byte[false] > STREAMING_GAIN * handover->ns_per_byte[true];
}

static void copy(const struct handover *handover, bool streaming, void *to, const void *from, size_t bytes) {
    if (!streaming) {
        memcpy(to, from, bytes);
        return;
    }
    handover->kernels->stream(to, from, bytes);
    handover->kernels->stream_end();
}

// Interruptions only lengthen a copy: a smaller time replaces the estimate at once, a larger one raises it by
// a limited factor.
static void update_estimate(double *estimate, double ns_per_byte) {
    double most = *estimate * MOST_RAISE;
    *estimate = *estimate == 0 || ns_per_byte < most ? ns_per_byte : most;
}

void handover_copy(struct handover *handover, void *to, const void *from, size_t bytes) {
    if (!handover->tries || bytes < LEAST_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    bool streaming = streaming_is_cheaper(handover);
    unsigned number = handover->copies++;
    if (number % PROBE_EVERY == 0) streaming = !streaming;
    if (number % TIME_EVERY != 0) {
        copy(handover, streaming, to, from, bytes);
        return;
    }
    uint64_t start_ns = clock_ns();
    copy(handover, streaming, to, from, bytes);
    update_estimate(&handover->ns_per_byte[streaming], (double)(clock_ns() - start_ns) / (double)bytes);
}
