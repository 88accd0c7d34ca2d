// Child processes: start, line-wise talk with deadlines, an end without leftovers, and why they ended.
//
// A child leads a session of its own, so that everything it starts, mpirun's ranks too, can be found and
// killed with it. It gets SIGTERM from the kernel should gentables be killed. While a child lives, SIGINT,
// SIGTERM and SIGHUP do not end gentables but the wait they arrive in ("interrupted"): the caller closes the
// child and ends with 128 + the signal's number. From Lua: local child = require("core.process").start({
// "mpirun", ... }).
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process_session.h"

enum {
    LINE_LIMIT = 1 << 20, // a longer line is an error: the child talks something else
    TAIL_SIZE = 4096,     // what is kept of stderr
    PIECES = 64,          // of a pipe, read at once
    EXEC_FAILED = 127,
    CLOSE_TICK_MS = 5, // how often an ending child is looked at
};

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

// ---- signals: caught while a child lives ------------------------------------------------------

static const int caught_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught_signals / sizeof caught_signals[0] };
static struct sigaction former_actions[CAUGHT];
static volatile sig_atomic_t caught_signal;
static int living_children;

static void catch_signal(int number) {
    caught_signal = number;
}

static void add_living_child(void) {
    if (living_children++ > 0) return;
    struct sigaction action = {.sa_handler = catch_signal};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++) {
        sigaction(caught_signals[i], NULL, &former_actions[i]);
        // What is ignored from outside (nohup) stays so.
        if (former_actions[i].sa_handler != SIG_IGN) sigaction(caught_signals[i], &action, NULL);
    }
}

static void remove_living_child(void) {
    if (--living_children > 0) return;
    for (int i = 0; i < CAUGHT; i++) sigaction(caught_signals[i], &former_actions[i], NULL);
}

static void block_signals(sigset_t *former) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < CAUGHT; i++) sigaddset(&set, caught_signals[i]);
    sigprocmask(SIG_BLOCK, &set, former);
}

// ---- time and waiting -------------------------------------------------------------------------

// Seconds of the monotonic clock.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Waits until one of `polls` is ready or `deadline` (as of now()) has passed. A signal that came before
// counts too.
static enum wait_result wait_until(struct pollfd *polls, nfds_t count, double deadline) {
    sigset_t former;
    block_signals(&former);
    enum wait_result result = WAIT_INTERRUPTED;
    while (caught_signal == 0) {
        double left = deadline - now();
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

// In the child: never returns. An exec that fails sends its errno through `report`.
static void become(char *const argv[], char *const environment[], const int standard[3], int report,
                   pid_t parent) {
    setsid();
    // The parent may have died before the death signal was asked for.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(EXEC_FAILED);
    for (int i = 0; i < 3; i++) dup2(standard[i], i);
    signal(SIGPIPE, SIG_DFL); // gentables ignores it, and exec hands that on
    execvpe(argv[0], argv, environment);
    int problem = errno;
    if (write(report, &problem, sizeof problem) < 0) _exit(EXEC_FAILED);
    _exit(EXEC_FAILED);
}

// Returns 0, or the errno that exec failed with in the child. `report` ends empty when exec succeeds.
static int exec_problem(int report) {
    int problem = 0;
    ssize_t got;
    do {
        got = read(report, &problem, sizeof problem);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof problem ? problem : 0;
}

static int wait_for_exit(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// Starts argv[0], looked up in PATH. Returns 0, or an errno value.
static int process_start(struct process *process, char *const argv[], char *const environment[]) {
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
    add_living_child(); // before it can be seen: who sees it may signal us
    pid_t pid = fork();
    if (pid == 0) become(argv, environment, standard, ends[7], parent);
    int problem = pid < 0 ? errno : 0;
    close_end(&ends[0]), close_end(&ends[3]), close_end(&ends[5]), close_end(&ends[7]);
    if (problem == 0) problem = exec_problem(ends[6]);
    if (problem != 0) {
        if (pid > 0) wait_for_exit(pid);
        remove_living_child();
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

// ---- talk -------------------------------------------------------------------------------------

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

// Reads what is there, `size` bytes at most, and closes the end where no more can come. Returns how many.
static size_t read_piece(int *end, char *buffer, size_t size) {
    if (*end < 0) return 0;
    ssize_t got = read(*end, buffer, size);
    if (got > 0) return (size_t)got;
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) close_end(end);
    return 0;
}

static bool keep_lines(struct text *lines, const char *data, size_t length) {
    if (!text_reserve(lines, length)) return false;
    memcpy(lines->data + lines->length, data, length);
    lines->length += length;
    return true;
}

// Reads what is there from stderr, and from stdout, for read_line if `keep`; a part of it where there is very
// much. Returns false when out of memory.
static bool read_available(struct process *process, bool keep) {
    char buffer[4096];
    size_t got;
    for (int i = 0; i < PIECES && (got = read_piece(&process->from_stderr, buffer, sizeof buffer)) > 0; i++) {
        keep_tail(process, buffer, got);
    }
    for (int i = 0; i < PIECES && (got = read_piece(&process->from_child, buffer, sizeof buffer)) > 0; i++) {
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

// Waits for a whole line on stdout, `timeout` seconds at most. On READ_LINE its length, without the newline,
// is in *length and it stands at the start of process->lines; drop_line takes it away.
static enum read_result read_line(struct process *process, double timeout, size_t *length) {
    double deadline = now() + timeout;
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
        if (process->from_child < 0) return READ_END;
        struct pollfd polls[2];
        nfds_t count = pipes_to_read(process, polls);
        enum wait_result waited = wait_until(polls, count, deadline);
        if (waited == WAIT_INTERRUPTED) return READ_INTERRUPTED;
        if (waited == WAIT_TIMEOUT) return READ_TIMEOUT;
        if (waited == WAIT_ERROR || !read_available(process, true)) return READ_ERROR;
    }
}

static void drop_line(struct process *process, size_t length) {
    struct text *lines = &process->lines;
    lines->length -= length + 1;
    memmove(lines->data, lines->data + length + 1, lines->length);
}

// Writes all of `data`, `timeout` seconds at most; meanwhile reads, so that neither side waits for the other.
static enum wait_result write_all(struct process *process, const char *data, size_t length, double timeout) {
    double deadline = now() + timeout;
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
        if (!read_available(process, true)) return WAIT_ERROR;
    }
    return WAIT_READY;
}

// ---- end --------------------------------------------------------------------------------------

// Reads on, so that no full pipe holds the child up, until it has ended or `seconds` have passed. It is not
// reaped: while it is a zombie, its number stays its own and names its session alone.
static bool ends_within(struct process *process, double seconds) {
    double deadline = now() + seconds;
    for (;;) {
        read_available(process, false);
        siginfo_t info = {0};
        int got = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((got == 0 && info.si_pid == process->pid) || (got < 0 && errno != EINTR)) return true;
        if (now() >= deadline) return false;
        struct pollfd polls[2];
        poll(polls, pipes_to_read(process, polls), CLOSE_TICK_MS);
    }
}

// Ends the child: closes its stdin and gives it `grace` seconds, then SIGTERM and `grace` seconds more, then
// SIGKILL to all of its session. A second call does nothing.
static void process_close(struct process *process, double grace) {
    if (!process->running) return;
    close_end(&process->to_child);
    bool ended = ends_within(process, grace);
    if (!ended) {
        kill(-process->pid, SIGTERM);
        ended = ends_within(process, grace);
    }
    if (!ended) kill(-process->pid, SIGKILL);
    session_kill(process->pid);
    process->status = wait_for_exit(process->pid);
    read_available(process, false);
    close_end(&process->from_child);
    close_end(&process->from_stderr);
    process->running = false;
    remove_living_child();
}

// Writes why the child ended in words.
static void exit_reason(int status, char *reason, size_t size) {
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        const char *text = sigdescr_np(WTERMSIG(status));
        snprintf(reason, size, "killed by SIG%s (%s)", name ? name : "?", text ? text : "unknown signal");
    } else {
        snprintf(reason, size, "exit code %d", WEXITSTATUS(status));
    }
}

// ---- Lua --------------------------------------------------------------------------------------

#define PROCESS_TYPE "gentables.process"

static struct process *check_process(lua_State *lua) {
    return luaL_checkudata(lua, 1, PROCESS_TYPE);
}

static int push_message(lua_State *lua, const char *message) {
    lua_pushnil(lua);
    lua_pushstring(lua, message);
    return 2;
}

// Pushes an array of the texts in the list at `index`, with room for `more` and a NULL.
static char **push_texts(lua_State *lua, int index, size_t more) {
    size_t count = (size_t)lua_rawlen(lua, index);
    char **texts = lua_newuserdatauv(lua, (count + more + 1) * sizeof *texts, 1);
    lua_createtable(lua, (int)count, 0); // keeps the texts alive
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, index, (lua_Integer)i + 1);
        if (lua_type(lua, -1) != LUA_TSTRING) luaL_error(lua, "item %d of a list is no text", (int)i + 1);
        texts[i] = (char *)lua_tostring(lua, -1);
        lua_rawseti(lua, -2, (lua_Integer)i + 1);
    }
    lua_setiuservalue(lua, -2, 1);
    texts[count] = NULL;
    return texts;
}

static bool is_set(char *const *settings, size_t count, const char *setting) {
    size_t name_length = strcspn(setting, "=") + 1;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(settings[i], setting, name_length) == 0) return true;
    }
    return false;
}

// Pushes the environment: the list at `index`, and what is set already under other names.
static char **push_environment(lua_State *lua, int index) {
    size_t added = (size_t)lua_rawlen(lua, index), inherited = 0;
    while (environ[inherited] != NULL) inherited++;
    char **settings = push_texts(lua, index, inherited);
    size_t count = added;
    for (size_t i = 0; i < inherited; i++) {
        if (!is_set(settings, added, environ[i])) settings[count++] = environ[i];
    }
    settings[count] = NULL;
    return settings;
}

// start(argv [, { "NAME=VALUE", ... }]) -> process | nil, message
static int lua_process_start(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_argcheck(lua, lua_rawlen(lua, 1) > 0, 1, "an empty command");
    lua_settop(lua, 2);
    if (lua_isnil(lua, 2)) {
        lua_newtable(lua);
        lua_replace(lua, 2);
    }
    luaL_checktype(lua, 2, LUA_TTABLE);
    char **argv = push_texts(lua, 1, 0);
    char **environment = push_environment(lua, 2);
    struct process *process = lua_newuserdatauv(lua, sizeof *process, 0);
    *process = (struct process){.to_child = -1, .from_child = -1, .from_stderr = -1};
    luaL_setmetatable(lua, PROCESS_TYPE);
    int problem = process_start(process, argv, environment);
    if (problem == 0) return 1;
    lua_pushnil(lua);
    lua_pushfstring(lua, "%s: %s", argv[0], strerror(problem));
    return 2;
}

// process:read_line(seconds) -> text | nil, "timeout" | "end" | "interrupted" | message
static int lua_process_read_line(lua_State *lua) {
    struct process *process = check_process(lua);
    size_t length = 0;
    switch (read_line(process, luaL_checknumber(lua, 2), &length)) {
    case READ_LINE:
        lua_pushlstring(lua, process->lines.data, length);
        drop_line(process, length);
        return 1;
    case READ_TIMEOUT: return push_message(lua, "timeout");
    case READ_END: return push_message(lua, "end");
    case READ_INTERRUPTED: return push_message(lua, "interrupted");
    case READ_TOO_LONG: return push_message(lua, "a line without an end");
    case READ_ERROR: break;
    }
    return push_message(lua, strerror(errno));
}

// process:write(text, seconds) -> true | nil, "timeout" | "interrupted" | message
static int lua_process_write(lua_State *lua) {
    struct process *process = check_process(lua);
    size_t length;
    const char *data = luaL_checklstring(lua, 2, &length);
    if (process->to_child < 0) return push_message(lua, "closed");
    switch (write_all(process, data, length, luaL_checknumber(lua, 3))) {
    case WAIT_READY: break;
    case WAIT_TIMEOUT: return push_message(lua, "timeout");
    case WAIT_INTERRUPTED: return push_message(lua, "interrupted");
    case WAIT_ERROR: return push_message(lua, strerror(errno));
    }
    lua_pushboolean(lua, 1);
    return 1;
}

// process:close(grace_seconds) -> how it ended, whether that was exit code 0
static int lua_process_close(lua_State *lua) {
    struct process *process = check_process(lua);
    process_close(process, luaL_checknumber(lua, 2));
    char reason[128];
    exit_reason(process->status, reason, sizeof reason);
    lua_pushstring(lua, reason);
    lua_pushboolean(lua, process->status == 0);
    return 2;
}

// process:ends_within(seconds) -> whether it has ended by then; it is still to be closed.
static int lua_process_ends_within(lua_State *lua) {
    struct process *process = check_process(lua);
    double seconds = luaL_checknumber(lua, 2);
    lua_pushboolean(lua, !process->running || ends_within(process, seconds));
    return 1;
}

// process:stopped() -> which processes of its session are stopped, in words | nil
static int lua_process_stopped(lua_State *lua) {
    struct process *process = check_process(lua);
    char text[256] = "";
    if (process->running) session_stopped(process->pid, text, sizeof text);
    if (text[0] == '\0') return 0;
    lua_pushstring(lua, text);
    return 1;
}

// process:kill(number): sends the signal to the child alone.
static int lua_process_kill(lua_State *lua) {
    struct process *process = check_process(lua);
    if (process->running) kill(process->pid, (int)luaL_checkinteger(lua, 2));
    return 0;
}

// process:errors() -> the end of what it wrote to stderr
static int lua_process_errors(lua_State *lua) {
    struct process *process = check_process(lua);
    if (process->running) read_available(process, true);
    lua_pushlstring(lua, process->tail, process->tail_length);
    return 1;
}

static int lua_process_pid(lua_State *lua) {
    lua_pushinteger(lua, check_process(lua)->pid);
    return 1;
}

static int lua_process_collect(lua_State *lua) {
    struct process *process = check_process(lua);
    process_close(process, 0);
    free(process->lines.data);
    process->lines = (struct text){0};
    return 0;
}

// interrupted() -> number and name of the signal that was caught | nil
static int lua_process_interrupted(lua_State *lua) {
    if (caught_signal == 0) return 0;
    lua_pushinteger(lua, caught_signal);
    lua_pushfstring(lua, "SIG%s", sigabbrev_np(caught_signal));
    return 2;
}

// hold_signals(whether): keeps SIGINT, SIGTERM and SIGHUP waiting, for steps that should not be cut in half.
static int lua_process_hold_signals(lua_State *lua) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < CAUGHT; i++) sigaddset(&set, caught_signals[i]);
    sigprocmask(lua_toboolean(lua, 1) ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    return 0;
}

// now() -> seconds of a clock that is never set back
static int lua_process_now(lua_State *lua) {
    lua_pushnumber(lua, now());
    return 1;
}

int luaopen_core_process(lua_State *lua) {
    static const struct luaL_Reg methods[] = {
        {"read_line", lua_process_read_line},
        {"write", lua_process_write},
        {"close", lua_process_close},
        {"ends_within", lua_process_ends_within},
        {"stopped", lua_process_stopped},
        {"kill", lua_process_kill},
        {"errors", lua_process_errors},
        {"pid", lua_process_pid},
        {NULL, NULL},
    };
    static const struct luaL_Reg functions[] = {
        {"start", lua_process_start},
        {"interrupted", lua_process_interrupted},
        {"hold_signals", lua_process_hold_signals},
        {"now", lua_process_now},
        {NULL, NULL},
    };
    luaL_newmetatable(lua, PROCESS_TYPE);
    luaL_newlib(lua, methods);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, lua_process_collect);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -3, "__gc");
    lua_setfield(lua, -2, "__close");
    lua_pop(lua, 1);
    luaL_newlib(lua, functions);
    return 1;
}
