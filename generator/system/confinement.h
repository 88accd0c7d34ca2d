// Limits of a child process that treats code of others. A limited process, such as a compiler, has all
// rights, but not all memory. A confined one computes, and reads files; it cannot write files, reach the
// network or other processes, or start further ones.
#ifndef GENTABLES_CONFINEMENT_H
#define GENTABLES_CONFINEMENT_H

#include <stdbool.h>

// Whether this system can confine a process: Linux with seccomp filters, on an architecture that is known
// here.
bool confinement_exists(void);

enum rights { RIGHTS_ALL, RIGHTS_LIMITED, RIGHTS_CONFINED };

// Limits the calling process and each that it starts to 2 GiB of memory and to files of 256 MiB. Returns 0,
// or an errno value.
int limit_resources(void);

// Confines the calling process and all that it executes, for ever: 60 s of processor time, 1 GiB of memory,
// and the system calls that a program needs to start, to read, and to write to its stdout and stderr; all
// others fail with EPERM. No privileges are needed. Returns 0, or an errno value.
int confine(void);

#endif
