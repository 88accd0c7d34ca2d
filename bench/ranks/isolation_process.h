// The warden of a process that runs others' code: the process that was started, of which the one that does
// the work is a child from then on. It sees how that ends, whatever ends it, before whoever started it can;
// and nothing that it leaves behind outlives it.
#ifndef BENCH_ISOLATION_PROCESS_H
#define BENCH_ISOLATION_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

// Returns in the child, once: before threads, and before libraries that do not outlive a fork. -1: there is
// none, see errno. The warden hands on signals that ask for an end. When the child has ended it calls
// `ended(status)`, with waitpid's status, unless it was asked for that end; then it kills the processes that
// the child has left, theirs too, and ends in the same way, or, where `ended` returned true, with exit code 1
// at best. Its memory is a copy, but for what is shared.
int isolation_begin(bool (*ended)(int status));

// Whether this process has one.
bool is_isolated(void);

// Processes of this one, and, where it has a warden, those that they left to it.
long isolation_children(void);

// A process's state letter as in /proc, and its parent; PROCESS_GONE, where it is not there, or has ended and
// nobody has waited for it, which still has a parent.
enum { PROCESS_GONE = 'X' };
char process_state(pid_t pid, pid_t *parent);

#endif
