// Child processes: start, exchange of lines with deadlines, and an end that leaves no process behind.
//
// A child leads a session of its own, so that all processes that it starts, such as mpirun's ranks, can be
// found and killed with it. The kernel sends it SIGTERM if gentables is killed. While a child lives, SIGINT,
// SIGTERM and SIGHUP do not end gentables; the current wait returns "interrupted", the caller closes the
// child and ends with exit code 128 + the signal's number.
#ifndef GENTABLES_PROCESS_H
#define GENTABLES_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "confinement.h"

enum { TAIL_SIZE = 4096 }; // the kept part of stderr

struct text {
    char *data;
    size_t length, capacity;
};

struct process {
    pid_t pid; // of the leader, and so of its session and its process group
    bool running;
    int status;                            // of waitpid, after the end
    int to_child, from_child, from_stderr; // -1: closed
    int error;                             // errno of a failed read of stdout, or 0
    struct text lines;                     // read from stdout, not yet returned
    char tail[TAIL_SIZE];                  // the end of stderr
    size_t tail_length;
};

enum wait_result { WAIT_ERROR = -2, WAIT_INTERRUPTED = -1, WAIT_TIMEOUT = 0, WAIT_READY = 1 };
enum read_result { READ_LINE, READ_TIMEOUT, READ_END, READ_INTERRUPTED, READ_TOO_LONG, READ_ERROR };

// Seconds of the monotonic clock.
double process_now(void);

// Starts argv[0], looked up in PATH. Returns 0, or an errno value.
int process_start(struct process *process, char *const argv[], char *const environment[], enum rights rights);

// Waits for a complete line on stdout, at most `timeout` seconds. On READ_LINE the line is at the start of
// process->lines, with its length without the newline in *length; process_drop_line removes it.
enum read_result process_read_line(struct process *process, double timeout, size_t *length);
void process_drop_line(struct process *process, size_t length);

// Writes all of `data`, in at most `timeout` seconds. Reads meanwhile, so that neither side blocks the other.
enum wait_result process_write(struct process *process, const char *data, size_t length, double timeout);

// Reads the available output of stderr and stdout, at most 256 KiB of each; stdout is kept for
// process_read_line if `keep`. Returns false if memory runs out.
bool process_read_available(struct process *process, bool keep);

// Waits until the child has ended or `seconds` have passed. Reads and drops its output meanwhile, so that no
// full pipe blocks it. Returns whether it has ended; it is not reaped.
bool process_ends_within(struct process *process, double seconds);

// Ends the child: closes its stdin and waits `grace` seconds; then sends SIGTERM and waits as long again;
// then sends SIGKILL to all of its session. A second call does nothing.
void process_close(struct process *process, double grace);

#endif
