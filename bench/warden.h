// The warden of a process that runs others' code: the process that was started, of which the one that does
// the work is a child from then on. It sees how that ends, whatever ends it, before whoever started it can;
// and nothing that it leaves behind outlives it.
#ifndef BENCH_WARDEN_H
#define BENCH_WARDEN_H

#include <stdbool.h>
#include <sys/types.h>

// Returns in the child, once: before threads, and before libraries that do not outlive a fork. -1: there is
// none, see errno. The warden hands on signals that ask for an end. When the child has ended it calls
// `ended(status)`, with waitpid's status, unless it was asked for that end; then it kills the processes that
// the child has left, theirs too, and ends in the same way, or, where `ended` returned true, with exit code 1
// at best. Its memory is a copy, but for what is shared.
int warden_begin(bool (*ended)(int status));

// Processes of this one, and, where it has a warden, those that they left to it.
long warden_children(void);

#endif
