// Child processes, as process.c and workers.c both need them: signals while children live, waiting for the
// end of a child, the reason of its end.
//
// Between signals_catch and signals_release, SIGINT, SIGTERM and SIGHUP do not end the program: callers end
// their waits when signals_caught returns a number. Signals that are ignored at the start (nohup) stay
// ignored.
#ifndef GENTABLES_CHILD_H
#define GENTABLES_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Calls nest: each needs one call of signals_release.
void signals_catch(void);
void signals_release(void);

// The number of the last signal that was caught, or 0.
int signals_caught(void);

// For a child that was forked while its parent caught signals, and installs handlers of its own: forgets the
// signal that was caught and the calls of signals_catch.
void signals_reset(void);

// The set of these signals; and blocking them, with the former mask in `former`.
void signals_fill(sigset_t *set);
void signals_block(sigset_t *former);

// Whether a child has ended. It is not reaped: as a zombie it keeps its process id, which is also the id of
// its session and its process group.
bool child_has_ended(pid_t pid);

// Waits for the end of a child and reaps it; returns its status.
int child_reap(pid_t pid);

// Writes the reason of a child's end, from its status: "exit code 1", "killed by SIGSEGV (...)".
enum { EXIT_REASON_SIZE = 128 };
void child_exit_reason(int status, char reason[EXIT_REASON_SIZE]);

#endif
