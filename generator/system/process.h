// Child processes: start, line-wise talk with deadlines, an end without leftovers.
//
// A child leads a session of its own, so that everything it starts, mpirun's ranks too, can be found and
// killed with it. The kernel sends it SIGTERM if gentables is killed. While a child lives, SIGINT, SIGTERM
// and SIGHUP do not end gentables but the wait in which they arrive ("interrupted"): the caller closes the
// child and ends with 128 + the signal's number.
#ifndef GENTABLES_PROCESS_H
#define GENTABLES_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TAIL_SIZE = 4096 }; // what is kept of stderr

struct text {
    char *data;
    size_t length, capacity;
};

struct process {
    pid_t pid; // the leader; its session and its process group have the same number
    bool running;
    int status;                            // of waitpid, once it runs no more
    int to_child, from_child, from_stderr; // -1: closed
    struct text lines;                     // read from stdout, not yet handed out
    char tail[TAIL_SIZE];                  // the end of stderr
    size_t tail_length;
};

enum wait_result { WAIT_ERROR = -2, WAIT_INTERRUPTED = -1, WAIT_TIMEOUT = 0, WAIT_READY = 1 };
enum read_result { READ_LINE, READ_TIMEOUT, READ_END, READ_INTERRUPTED, READ_TOO_LONG, READ_ERROR };

// Seconds of a clock that is never set back.
double process_now(void);

// Starts argv[0], looked up in PATH. Returns 0, or an errno value.
int process_start(struct process *process, char *const argv[], char *const environment[]);

// Waits for a whole line on stdout, `timeout` seconds at most. On READ_LINE its length, without the newline,
// is in *length and it stands at the start of process->lines; process_drop_line removes it.
enum read_result process_read_line(struct process *process, double timeout, size_t *length);
void process_drop_line(struct process *process, size_t length);

// Writes all of `data`, `timeout` seconds at most; meanwhile reads, so that neither side waits for the other.
enum wait_result process_write(struct process *process, const char *data, size_t length, double timeout);

// Reads what is there from stderr, and from stdout, for process_read_line if `keep`; a part of it if there is
// very much. Returns false when out of memory.
bool process_read_available(struct process *process, bool keep);

// Reads on, so that no full pipe holds the child up, until it has ended or `seconds` have passed. Returns
// whether it has ended; it is not reaped.
bool process_ends_within(struct process *process, double seconds);

// Ends the child: closes its stdin and gives it `grace` seconds, then SIGTERM and `grace` seconds more, then
// SIGKILL to all of its session. A second call does nothing.
void process_close(struct process *process, double grace);

#endif
