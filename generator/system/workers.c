// require "core.workers": works on several items at once, each in a child process, so that a crash fails one
// item only and the memory of an item is freed when it is done. Lua modules use system/workers.lua.
//
// A child leads a process group of its own. It ends when gentables ends (the kernel sends SIGTERM) and when
// gentables receives SIGINT, SIGTERM or SIGHUP. It then completes its current call of C, for at most
// ALARM_SECONDS, so that no file is left half-written.
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bindings.h"
#include "child.h"
#include "cleanup.h"

enum {
    PIECE = 1 << 16,   // bytes that are read from a pipe at once
    ALARM_SECONDS = 2, // that a child has to end after a signal
    GRACE_MS = 3000,   // until it is killed
    TICK_MS = 5,       // between two looks at a child that should end
    MOST_WORKERS = 1024,
};

struct worker {
    pid_t pid;
    int pipe; // -1: not in use
    lua_Integer item;
    char *data; // its answer so far
    size_t length, capacity;
    int error; // errno of a failure to read it; 0: none
};

// All of one map. Its arrays are at stack indices 5 and 6 of its Lua function.
struct work {
    struct worker *workers; // `jobs` of them
    struct pollfd *polls;
    size_t jobs, running;
    lua_Integer count, next; // items
};

enum { ARG_COUNT = 1, ARG_JOBS, ARG_RUN, ARG_DONE };

// ---- signals ----------------------------------------------------------------------------------

static lua_State *working_lua;              // in a child: runs the item
static volatile sig_atomic_t ending_signal; // in a child; 0: none came

static void raise_interrupted(lua_State *lua, lua_Debug *debug) {
    (void)debug;
    luaL_error(lua, "interrupted");
}

// In a child: makes the next step in Lua raise an error, as Lua's own interpreter does.
static void end_work(int number) {
    ending_signal = number;
    lua_sethook(working_lua, raise_interrupted, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
    alarm(ALARM_SECONDS);
}

// ---- the child --------------------------------------------------------------------------------

static void write_answer(int pipe, const char *data, size_t length) {
    while (length > 0) {
        ssize_t wrote = write(pipe, data, length);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            fprintf(stderr, "gentables: a result cannot be passed on: %s\n", strerror(errno));
            _exit(EXIT_FAILURE);
        }
        data += wrote;
        length -= (size_t)wrote;
    }
}

// Removes the child's unfinished files, and ends it. Also a handler of signals.
static void give_up(int number) {
    (void)number;
    cleanup_run();
    _exit(EXIT_FAILURE);
}

static void listen_for_the_end(lua_State *lua, pid_t parent) {
    working_lua = lua;
    ending_signal = 0;
    signals_reset();
    setpgid(0, 0);
    signal(SIGALRM, give_up);
    struct sigaction action = {.sa_handler = end_work};
    sigemptyset(&action.sa_mask);
    // A terminal's Ctrl-C does not reach this process group; gentables sends SIGTERM.
    sigaction(SIGINT, &action, NULL), sigaction(SIGTERM, &action, NULL), sigaction(SIGHUP, &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    // The parent may have died before PR_SET_PDEATHSIG was set.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(EXIT_FAILURE);
}

// Runs the item and writes its answer to `pipe`. Never returns.
static void work_on(lua_State *lua, lua_Integer item, int pipe, pid_t parent) {
    listen_for_the_end(lua, parent);
    lua_pushvalue(lua, ARG_RUN);
    lua_pushinteger(lua, item);
    int status = lua_pcall(lua, 1, 1, 0);
    size_t length = 0;
    const char *answer = lua_tolstring(lua, -1, &length);
    if (ending_signal != 0) give_up(0);
    if (status != LUA_OK || answer == NULL) {
        // Lua's message: its status is LUA_ERRMEM, or LUA_ERRRUN in a luaL_Buffer.
        if (answer != NULL && strcmp(answer, "not enough memory") == 0) out_of_memory_end();
        fprintf(stderr, "gentables: internal error: %s\n",
                answer == NULL ? "an item without answer" : answer);
        give_up(0);
    }
    fflush(NULL);
    write_answer(pipe, answer, length);
    _exit(EXIT_SUCCESS);
}

// ---- the parent -------------------------------------------------------------------------------

static void close_pipes(struct work *work) {
    for (size_t i = 0; i < work->jobs; i++) {
        if (work->workers[i].pipe >= 0) close(work->workers[i].pipe);
    }
}

// Starts the next item as `worker`, which is free. Returns 0, or an errno value.
static int start_next(lua_State *lua, struct work *work, struct worker *worker) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    fflush(NULL); // else every child writes the buffered output
    sigset_t former;
    signals_block(&former);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close_pipes(work);
        close(ends[0]);
        work_on(lua, work->next, ends[1], parent);
    }
    int problem = pid < 0 ? errno : 0;
    close(ends[1]);
    if (problem != 0) {
        close(ends[0]);
    } else {
        setpgid(pid, pid); // both parent and child: so the group exists when either continues
        *worker = (struct worker){.pid = pid, .pipe = ends[0], .item = work->next++};
        work->running++;
    }
    sigprocmask(SIG_SETMASK, &former, NULL);
    return problem;
}

// Starts items while workers are free. Returns an errno value if nothing runs and nothing can be started.
static int start_more(lua_State *lua, struct work *work) {
    for (size_t i = 0; i < work->jobs && work->next <= work->count; i++) {
        if (work->workers[i].pipe >= 0) continue;
        int problem = start_next(lua, work, &work->workers[i]);
        if (problem != 0) return work->running == 0 ? problem : 0;
    }
    return 0;
}

static bool reserve(struct worker *worker) {
    if (worker->capacity - worker->length >= PIECE) return true;
    size_t capacity = 2 * worker->capacity + PIECE;
    char *data = realloc(worker->data, capacity);
    if (data == NULL) return false;
    worker->data = data;
    worker->capacity = capacity;
    return true;
}

// Reads a part of a worker's answer. Returns whether that was the last one.
static bool read_answer(struct worker *worker) {
    if (!reserve(worker)) {
        worker->error = ENOMEM;
        kill(-worker->pid, SIGKILL);
        return true;
    }
    ssize_t got = read(worker->pipe, worker->data + worker->length, PIECE);
    if (got > 0) worker->length += (size_t)got;
    if (got >= 0 || errno == EINTR) return got == 0;
    worker->error = errno;
    kill(-worker->pid, SIGKILL);
    return true;
}

static int reap(struct worker *worker) {
    close(worker->pipe);
    worker->pipe = -1;
    return child_reap(worker->pid);
}

// Calls done(item, answer | nil, reason). Returns the status of that call; its error stays on the stack.
static int hand_over(lua_State *lua, struct work *work, struct worker *worker) {
    int status = reap(worker);
    work->running--;
    lua_pushvalue(lua, ARG_DONE);
    lua_pushinteger(lua, worker->item);
    if (status == 0 && worker->error == 0) {
        lua_pushlstring(lua, worker->data == NULL ? "" : worker->data, worker->length);
        lua_pushnil(lua);
    } else {
        lua_pushnil(lua);
        if (worker->error == ENOMEM) {
            lua_pushliteral(lua, "out of memory");
        } else if (worker->error != 0) {
            lua_pushfstring(lua, "the answer of its process cannot be read: %s", strerror(worker->error));
        } else {
            char reason[EXIT_REASON_SIZE];
            child_exit_reason(status, reason);
            lua_pushfstring(lua, "its process %s %s", WIFSIGNALED(status) ? "was" : "ended with", reason);
        }
    }
    free(worker->data);
    worker->data = NULL;
    return lua_pcall(lua, 3, 0, 0);
}

// Waits until an answer can be read. Returns false if a signal was caught.
static bool wait_for_some(struct work *work) {
    for (size_t i = 0; i < work->jobs; i++) {
        work->polls[i] = (struct pollfd){work->workers[i].pipe, POLLIN, 0}; // ppoll ignores -1
    }
    sigset_t former;
    signals_block(&former);
    while (signals_caught() == 0) {
        int ready = ppoll(work->polls, work->jobs, NULL, &former);
        if (ready > 0 || (ready < 0 && errno != EINTR)) break;
    }
    sigprocmask(SIG_SETMASK, &former, NULL);
    return signals_caught() == 0;
}

// Ends every child: with SIGTERM, and after GRACE_MS with SIGKILL to its process group.
static void end_all(struct work *work) {
    for (size_t i = 0; i < work->jobs; i++) {
        if (work->workers[i].pipe >= 0) kill(-work->workers[i].pid, SIGTERM);
    }
    int waited_ms = 0;
    for (size_t i = 0; i < work->jobs; i++) {
        struct worker *worker = &work->workers[i];
        if (worker->pipe < 0) continue;
        for (; waited_ms < GRACE_MS && !child_has_ended(worker->pid); waited_ms += TICK_MS) {
            nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
        }
        kill(-worker->pid, SIGKILL); // not reaped yet: its id is not reused
        reap(worker);
        free(worker->data);
        worker->data = NULL;
    }
    work->running = 0;
}

enum outcome { OUTCOME_DONE, OUTCOME_SIGNAL, OUTCOME_NO_CHILD, OUTCOME_ERROR };

// Works until all items are done. On OUTCOME_ERROR the error is on the stack, on OUTCOME_NO_CHILD the reason
// is in errno.
static enum outcome work_through(lua_State *lua, struct work *work) {
    while (work->next <= work->count || work->running > 0) {
        int problem = start_more(lua, work);
        if (problem != 0) {
            errno = problem;
            return OUTCOME_NO_CHILD;
        }
        if (!wait_for_some(work)) return OUTCOME_SIGNAL;
        for (size_t i = 0; i < work->jobs; i++) {
            if (work->polls[i].fd < 0 || work->polls[i].revents == 0) continue;
            if (!read_answer(&work->workers[i])) continue;
            if (hand_over(lua, work, &work->workers[i]) != LUA_OK) return OUTCOME_ERROR;
        }
    }
    return OUTCOME_DONE;
}

static struct work new_work(lua_State *lua) {
    struct work work = {.count = luaL_checkinteger(lua, ARG_COUNT), .next = 1};
    lua_Integer jobs = luaL_checkinteger(lua, ARG_JOBS);
    luaL_argcheck(lua, jobs >= 1, ARG_JOBS, "no worker");
    if (jobs > work.count) jobs = work.count;
    if (jobs > MOST_WORKERS) jobs = MOST_WORKERS;
    work.jobs = jobs < 0 ? 0 : (size_t)jobs;
    work.workers = lua_newuserdatauv(lua, (work.jobs + 1) * sizeof *work.workers, 0);
    work.polls = lua_newuserdatauv(lua, (work.jobs + 1) * sizeof *work.polls, 0);
    for (size_t i = 0; i < work.jobs; i++) work.workers[i] = (struct worker){.pipe = -1};
    return work;
}

// map(count, jobs, run, done): calls run(item), which returns a text, in a child for every item of 1..count,
// up to `jobs` at once, and then done(item, text | nil, reason) in this process, in the order of completion.
// Returns true; or nil, number and name of the signal that ended the work; or nil, nil, why no child can be
// started. An error in `done` ends all children and is then raised.
static int lua_workers_map(lua_State *lua) {
    luaL_checktype(lua, ARG_RUN, LUA_TFUNCTION);
    luaL_checktype(lua, ARG_DONE, LUA_TFUNCTION);
    lua_settop(lua, ARG_DONE);
    struct work work = new_work(lua);
    signals_catch();
    enum outcome outcome = work_through(lua, &work);
    int problem = errno, number = signals_caught();
    end_all(&work);
    signals_release();
    switch (outcome) {
    case OUTCOME_DONE: return push_true(lua);
    case OUTCOME_ERROR: return lua_error(lua);
    case OUTCOME_SIGNAL:
        lua_pushnil(lua);
        lua_pushinteger(lua, number);
        lua_pushfstring(lua, "SIG%s", sigabbrev_np(number));
        return 3;
    case OUTCOME_NO_CHILD: break;
    }
    lua_pushnil(lua);
    lua_pushnil(lua);
    lua_pushstring(lua, strerror(problem));
    return 3;
}

// cores() -> the number of processors that this process may use
static int lua_workers_cores(lua_State *lua) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    lua_pushinteger(lua, count < 1 ? 1 : count);
    return 1;
}

int luaopen_core_workers(lua_State *lua) {
    static const struct luaL_Reg functions[] = {
        {"map", lua_workers_map},
        {"cores", lua_workers_cores},
        {NULL, NULL},
    };
    luaL_newlib(lua, functions);
    return 1;
}
