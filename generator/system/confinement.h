// Confinement of a child process that runs code of others: it computes, and reads files; it cannot write
// files, reach the network or other processes, or start further ones.
#ifndef GENTABLES_CONFINEMENT_H
#define GENTABLES_CONFINEMENT_H

#include <stdbool.h>

// Whether this system can confine a process: Linux with seccomp filters, on an architecture that is known
// here.
bool confinement_exists(void);

// Confines the calling process and all that it executes, for ever: 60 s of processor time, 1 GiB of memory,
// and the system calls that a program needs to start, to read, and to write to its stdout and stderr; all
// others fail with EPERM. No privileges are needed. Returns 0, or an errno value.
int confine(void);

#endif
