// The isolation process of a process that runs foreign code. The process that was started becomes the
// isolation process, and a child of it does the work. So the isolation process notices every end of the child
// before the launcher does, and ends the processes that the child leaves behind.
#ifndef BENCH_ISOLATION_PROCESS_H
#define BENCH_ISOLATION_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

// Forks, and returns in the child. Call it once, before threads are made and libraries are loaded that do not
// survive a fork. -1: no isolation process, see errno. The isolation process passes SIGTERM, SIGINT and
// SIGHUP on to the child. When the child has ended without such a signal, it calls `ended(status)` with the
// status of waitpid. Then it kills the processes that the child left, with their children, and ends as the
// child did; if `ended` returned true, its exit code is not 0. Its memory is a copy of the child's, except
// for shared mappings.
int isolation_begin(bool (*ended)(int status));

// Whether this process has an isolation process.
bool is_isolated(void);

// The number of child processes of this process, and of those that its isolation process has inherited.
long isolation_children(void);

// The state letter of a process as in /proc, and its parent. PROCESS_GONE: it does not exist, or is a zombie,
// of which *parent is still set.
enum { PROCESS_GONE = 'X' };
char process_state(pid_t pid, pid_t *parent);

#endif
