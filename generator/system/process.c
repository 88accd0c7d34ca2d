// Child processes; see process.h.
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "process_session.h"

enum {
    LINE_LIMIT = 1 << 20, // a longer line is an error
    PIECES = 64,          // buffers that are read from a pipe at once
    EXEC_FAILED = 127,
    CONFINED_REPORT = 3, // the last descriptor that a confined process may write to
    CLOSE_TICK_MS = 5,   // between two looks at a child that should end
};

// ---- time and waiting -------------------------------------------------------------------------

double process_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Waits until one of `polls` is ready or `deadline`, a time of process_now(), has passed. A signal that was
// caught earlier ends the wait, too.
static enum wait_result wait_until(struct pollfd *polls, nfds_t count, double deadline) {
    sigset_t former;
    signals_block(&former);
    enum wait_result result = WAIT_INTERRUPTED;
    while (signals_caught() == 0) {
        double left = deadline - process_now();
        if (left < 0) left = 0;
        struct timespec timeout = {.tv_sec = (time_t)left};
        timeout.tv_nsec = (long)((left - (double)timeout.tv_sec) * 1e9);
        int ready = ppoll(polls, count, &timeout, &former);
        if (ready < 0 && errno == EINTR) continue;
        result = ready < 0 ? WAIT_ERROR : ready == 0 ? WAIT_TIMEOUT : WAIT_READY;
        break;
    }
    sigprocmask(SIG_SETMASK, &former, NULL);
    return result;
}

// ---- start ------------------------------------------------------------------------------------

static void close_end(int *end) {
    if (*end >= 0) close(*end);
    *end = -1;
}

static void close_all(int *ends, int count) {
    for (int i = 0; i < count; i++) close_end(&ends[i]);
}

// Runs in the child and never returns. If exec fails, or a limit, writes errno to `report`.
static void become(char *const argv[], char *const environment[], const int standard[3], int report,
                   pid_t parent, enum rights rights) {
    setsid();
    // The parent may have died before PR_SET_PDEATHSIG was set.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(EXEC_FAILED);
    for (int i = 0; i < 3; i++) dup2(standard[i], i);
    signal(SIGPIPE, SIG_DFL); // gentables ignores these, and exec inherits that
    signal(SIGXFSZ, SIG_DFL);
    int problem = 0;
    if (rights == RIGHTS_LIMITED) problem = limit_resources();
    if (rights == RIGHTS_CONFINED) {
        report = dup3(report, CONFINED_REPORT, O_CLOEXEC);
        problem = confine();
    }
    if (problem == 0) {
        execvpe(argv[0], argv, environment);
        problem = errno;
    }
    if (write(report, &problem, sizeof problem) < 0) _exit(EXEC_FAILED);
    _exit(EXEC_FAILED);
}

// Returns 0, or the errno of a failed exec in the child. If exec succeeds, it closes `report`.
static int exec_problem(int report) {
    int problem = 0;
    ssize_t got;
    do {
        got = read(report, &problem, sizeof problem);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof problem ? problem : 0;
}

int process_start(struct process *process, char *const argv[], char *const environment[],
                  enum rights rights) {
    int ends[8]; // pairs (read, write): stdin, stdout, stderr, report
    for (int i = 0; i < 8; i++) ends[i] = -1;
    for (int i = 0; i < 8; i += 2) {
        if (pipe2(&ends[i], O_CLOEXEC) != 0) {
            int problem = errno;
            close_all(ends, 8);
            return problem;
        }
    }
    const int standard[3] = {ends[0], ends[3], ends[5]};
    pid_t parent = getpid();
    signals_catch(); // before the child can be seen from outside
    pid_t pid = fork();
    if (pid == 0) become(argv, environment, standard, ends[7], parent, rights);
    int problem = pid < 0 ? errno : 0;
    close_end(&ends[0]), close_end(&ends[3]), close_end(&ends[5]), close_end(&ends[7]);
    if (problem == 0) problem = exec_problem(ends[6]);
    if (problem != 0) {
        if (pid > 0) child_reap(pid);
        signals_release();
        close_all(ends, 8);
        return problem;
    }
    close_end(&ends[6]);
    process->pid = pid;
    process->running = true;
    process->to_child = ends[1];
    process->from_child = ends[2];
    process->from_stderr = ends[4];
    fcntl(process->to_child, F_SETFL, O_NONBLOCK);
    fcntl(process->from_child, F_SETFL, O_NONBLOCK);
    fcntl(process->from_stderr, F_SETFL, O_NONBLOCK);
    return 0;
}

// ---- input and output -------------------------------------------------------------------------

static bool text_reserve(struct text *text, size_t more) {
    if (text->length + more <= text->capacity) return true;
    size_t capacity = 2 * (text->length + more);
    char *data = realloc(text->data, capacity);
    if (data == NULL) return false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

static void keep_tail(struct process *process, const char *data, size_t length) {
    if (length > TAIL_SIZE) data += length - TAIL_SIZE, length = TAIL_SIZE;
    size_t kept = process->tail_length;
    if (kept + length > TAIL_SIZE) {
        size_t drop = kept + length - TAIL_SIZE;
        memmove(process->tail, process->tail + drop, kept - drop);
        kept -= drop;
    }
    memcpy(process->tail + kept, data, length);
    process->tail_length = kept + length;
}

// Reads at most `size` available bytes; at the end of the file, or after an error, closes `end`. Returns the
// number of bytes; *error is set after an error.
static size_t read_piece(int *end, char *buffer, size_t size, int *error) {
    if (*end < 0) return 0;
    ssize_t got = read(*end, buffer, size);
    if (got > 0) return (size_t)got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got < 0) *error = errno;
    close_end(end);
    return 0;
}

static bool keep_lines(struct text *lines, const char *data, size_t length) {
    if (!text_reserve(lines, length)) return false;
    memcpy(lines->data + lines->length, data, length);
    lines->length += length;
    return true;
}

bool process_read_available(struct process *process, bool keep) {
    char buffer[4096];
    size_t got;
    int ignored;
    for (int i = 0; i < PIECES; i++) {
        if ((got = read_piece(&process->from_stderr, buffer, sizeof buffer, &ignored)) == 0) break;
        keep_tail(process, buffer, got);
    }
    for (int i = 0; i < PIECES; i++) {
        if ((got = read_piece(&process->from_child, buffer, sizeof buffer, &process->error)) == 0) break;
        if (keep && !keep_lines(&process->lines, buffer, got)) return false;
    }
    return true;
}

static nfds_t pipes_to_read(const struct process *process, struct pollfd polls[2]) {
    nfds_t count = 0;
    if (process->from_child >= 0) polls[count++] = (struct pollfd){process->from_child, POLLIN, 0};
    if (process->from_stderr >= 0) polls[count++] = (struct pollfd){process->from_stderr, POLLIN, 0};
    return count;
}

enum read_result process_read_line(struct process *process, double timeout, size_t *length) {
    double deadline = process_now() + timeout;
    size_t searched = 0;
    for (;;) {
        struct text *lines = &process->lines;
        char *newline = NULL;
        if (lines->length > searched)
            newline = memchr(lines->data + searched, '\n', lines->length - searched);
        if (newline != NULL) {
            *length = (size_t)(newline - lines->data);
            return READ_LINE;
        }
        searched = lines->length;
        if (lines->length > LINE_LIMIT) return READ_TOO_LONG;
        if (process->from_child < 0) {
            errno = process->error;
            return process->error == 0 ? READ_END : READ_ERROR;
        }
        struct pollfd polls[2];
        nfds_t count = pipes_to_read(process, polls);
        enum wait_result waited = wait_until(polls, count, deadline);
        if (waited == WAIT_INTERRUPTED) return READ_INTERRUPTED;
        if (waited == WAIT_TIMEOUT) return READ_TIMEOUT;
        if (waited == WAIT_ERROR || !process_read_available(process, true)) return READ_ERROR;
    }
}

void process_drop_line(struct process *process, size_t length) {
    struct text *lines = &process->lines;
    lines->length -= length + 1;
    memmove(lines->data, lines->data + length + 1, lines->length);
}

enum wait_result process_write(struct process *process, const char *data, size_t length, double timeout) {
    double deadline = process_now() + timeout;
    while (length > 0) {
        ssize_t wrote = write(process->to_child, data, length);
        if (wrote > 0) data += wrote, length -= (size_t)wrote;
        if (wrote > 0 || (wrote < 0 && errno == EINTR)) continue;
        if (errno != EAGAIN) return WAIT_ERROR;
        struct pollfd polls[3];
        nfds_t count = pipes_to_read(process, polls);
        polls[count] = (struct pollfd){process->to_child, POLLOUT, 0};
        enum wait_result waited = wait_until(polls, count + 1, deadline);
        if (waited != WAIT_READY) return waited;
        if (!process_read_available(process, true)) return WAIT_ERROR;
    }
    return WAIT_READY;
}

// ---- end --------------------------------------------------------------------------------------

bool process_ends_within(struct process *process, double seconds) {
    double deadline = process_now() + seconds;
    for (;;) {
        process_read_available(process, false);
        if (child_has_ended(process->pid)) return true;
        if (process_now() >= deadline) return false;
        struct pollfd polls[2];
        poll(polls, pipes_to_read(process, polls), CLOSE_TICK_MS);
    }
}

void process_close(struct process *process, double grace) {
    if (!process->running) return;
    close_end(&process->to_child);
    bool ended = process_ends_within(process, grace);
    if (!ended) {
        kill(-process->pid, SIGTERM);
        ended = process_ends_within(process, grace);
    }
    if (!ended) kill(-process->pid, SIGKILL);
    session_kill(process->pid);
    process->status = child_reap(process->pid);
    process_read_available(process, false);
    close_end(&process->from_child);
    close_end(&process->from_stderr);
    process->running = false;
    signals_release();
}
