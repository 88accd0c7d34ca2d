// What the two modules share that work through child processes (process.c, workers.c): signals while children
// live, waiting for the end of a child, and why it ended.
//
// Between signals_catch and signals_release SIGINT, SIGTERM and SIGHUP do not end the program; the waits of
// its callers end, and signals_caught gives the number. A signal that the program was started to ignore
// (nohup) stays ignored.
#ifndef GENTABLES_CHILD_H
#define GENTABLES_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Each call needs one of signals_release.
void signals_catch(void);
void signals_release(void);

// The last signal that was caught; 0: none.
int signals_caught(void);

// In a child that was forked while its parent caught signals, and has handlers of its own: none was caught,
// and no caller catches any.
void signals_start_anew(void);

// Those that are caught, and blocking them; `former` gets the mask as it was.
void signals_fill(sigset_t *set);
void signals_block(sigset_t *former);

// Whether a child has ended. It is not reaped: a zombie keeps its number, which names its session and its
// process group.
bool child_has_ended(pid_t pid);

// Waits for the end of a child and reaps it; returns its status.
int child_reap(pid_t pid);

// Why a child ended, in words, from its status.
enum { EXIT_REASON_SIZE = 128 };
void child_exit_reason(int status, char reason[EXIT_REASON_SIZE]);

#endif
