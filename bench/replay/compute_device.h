// Where calls run: the processor, or a GPU. It has the memory of their operands, flushes its caches, and
// times a call by its own clock.
#ifndef REPLAY_COMPUTE_DEVICE_H
#define REPLAY_COMPUTE_DEVICE_H

#include "math_library.h"

enum { MOST_LIBRARIES = 2 };

struct compute_device {
    const char *name;     // "host"
    bool loads_at_launch; // the first call of an op loads kernels, so its time is not that of a call
    // The libraries that compute there, in order of preference; NULL: there are no more.
    const struct library *(*library)(int index);
    // Opens the device, once, before its libraries are opened. -1, with a reason: there is none.
    int (*open)(int threads, char reason[REASON_SIZE]);
    void (*describe)(char name[], size_t size); // as profilers call the device
    // Copies the operands to the memory of calls; they stay valid until the next load. -1, with a reason: out
    // of memory.
    int (*load)(const struct operands *operands, struct operands *loaded, char reason[REASON_SIZE]);
    // Fills the result with NaN.
    int (*poison)(const struct operands *loaded);
    // Makes a call and times it: with its operands in no cache (`is_cold`), or as the last call left them.
    // -1: the call or the device failed.
    int (*time)(const struct prepared_op *prepared, const struct operands *loaded, bool is_cold, double *us);
    // Prepares a call of a kernel that does nothing, to be timed as other calls: times of short calls are
    // mostly that of such a kernel. -1, with a reason. NULL: a call has no such cost.
    int (*prepare_empty)(struct prepared_op *prepared, char reason[REASON_SIZE]);
    // Copies the result to `operands`, where it is checked.
    int (*fetch)(const struct operands *loaded, const struct operands *operands);
    bool (*is_lost)(void); // no call can succeed any more: the process must be restarted
};

extern const struct compute_device device_host, device_cuda;

// A monotonic clock, in microseconds.
double now_us(void);

#endif
