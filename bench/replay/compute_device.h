// Where calls are made: the processor, or a GPU. It holds what they work on, makes its caches forget, and
// times a call by its own clock.
#ifndef REPLAY_COMPUTE_DEVICE_H
#define REPLAY_COMPUTE_DEVICE_H

#include "math_library.h"

enum { MOST_LIBRARIES = 2 };

struct machine {
    const char *name; // "host"
    // The libraries that compute there, in order of preference; NULL: there are no more.
    const struct library *(*library)(int index);
    // -1, with a reason: it is not there. Once, and before its libraries are opened.
    int (*open)(int threads, char reason[REASON_SIZE]);
    void (*describe)(char name[], size_t size); // as profilers call the device
    // Puts the operands where calls find them, until others are placed. -1, with a reason: there is no room.
    int (*place)(const struct operands *operands, struct operands *placed, char reason[REASON_SIZE]);
    // Fills the result with NaN.
    int (*forget)(const struct operands *placed);
    // Makes a call and times it: with its operands in no cache, or as the last call left them. -1: the call
    // or the machine failed.
    int (*time)(const struct call *call, const struct operands *placed, bool is_cold, double *us);
    // Brings the result to where it is checked.
    int (*fetch)(const struct operands *placed, const struct operands *operands);
    bool (*is_lost)(void); // nothing can be computed any more: the process has to be started anew
};

extern const struct machine machine_host, machine_cuda;

double now_us(void);

#endif
