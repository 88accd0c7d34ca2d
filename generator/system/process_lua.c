// require "core.process": child processes for Lua; see process.h.
//
//   local child = require("core.process").start { "mpirun", ... }
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bindings.h"
#include "child.h"
#include "process.h"
#include "process_session.h"

#define PROCESS_TYPE "gentables.process"

enum { COLLECT_GRACE = 5 }; // seconds

static struct process *check_process(lua_State *lua) {
    return luaL_checkudata(lua, 1, PROCESS_TYPE);
}

// Pushes an array of the texts in the list at `index`, with space for `more` texts and a NULL.
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

// Pushes the environment: the settings in the list at `index`, and the inherited ones with other names.
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

// start(argv [, { "NAME=VALUE", ... } [, "limited" | "confined"]]) -> process | nil, message. The rights are
// those of confinement.h.
static int lua_process_start(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_argcheck(lua, lua_rawlen(lua, 1) > 0, 1, "an empty command");
    lua_settop(lua, 3);
    static const char *const names[] = {"all", "limited", "confined", NULL}; // as in enum rights
    enum rights rights = (enum rights)luaL_checkoption(lua, 3, "all", names);
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
    int problem = process_start(process, argv, environment, rights);
    if (problem == 0) return 1;
    return push_failed(lua, lua_pushfstring(lua, "%s: %s", argv[0], strerror(problem)));
}

// can_confine() -> whether this system can confine a process
static int lua_process_can_confine(lua_State *lua) {
    lua_pushboolean(lua, confinement_exists());
    return 1;
}

// process:read_line(seconds) -> text | nil, "timeout" | "end" | "interrupted" | message
static int lua_process_read_line(lua_State *lua) {
    struct process *process = check_process(lua);
    size_t length = 0;
    switch (process_read_line(process, luaL_checknumber(lua, 2), &length)) {
    case READ_LINE:
        lua_pushlstring(lua, process->lines.data, length);
        process_drop_line(process, length);
        return 1;
    case READ_TIMEOUT: return push_failed(lua, "timeout");
    case READ_END: return push_failed(lua, "end");
    case READ_INTERRUPTED: return push_failed(lua, "interrupted");
    case READ_TOO_LONG: return push_failed(lua, "a line without an end");
    case READ_ERROR: break;
    }
    return push_failed(lua, strerror(errno));
}

// process:write(text, seconds) -> true | nil, "timeout" | "interrupted" | "end" (it has closed its stdin) |
// message
static int lua_process_write(lua_State *lua) {
    struct process *process = check_process(lua);
    size_t length;
    const char *data = luaL_checklstring(lua, 2, &length);
    if (process->to_child < 0) return push_failed(lua, "end");
    switch (process_write(process, data, length, luaL_checknumber(lua, 3))) {
    case WAIT_READY: break;
    case WAIT_TIMEOUT: return push_failed(lua, "timeout");
    case WAIT_INTERRUPTED: return push_failed(lua, "interrupted");
    case WAIT_ERROR: return push_failed(lua, errno == EPIPE ? "end" : strerror(errno));
    }
    return push_true(lua);
}

// process:close(grace_seconds) -> the reason of its end, whether that was exit code 0
static int lua_process_close(lua_State *lua) {
    struct process *process = check_process(lua);
    process_close(process, luaL_checknumber(lua, 2));
    char reason[EXIT_REASON_SIZE];
    child_exit_reason(process->status, reason);
    lua_pushstring(lua, reason);
    lua_pushboolean(lua, process->status == 0);
    return 2;
}

// process:ends_within(seconds) -> whether it has ended by then; it must still be closed
static int lua_process_ends_within(lua_State *lua) {
    struct process *process = check_process(lua);
    double seconds = luaL_checknumber(lua, 2);
    lua_pushboolean(lua, !process->running || process_ends_within(process, seconds));
    return 1;
}

// process:stopped() -> a text that lists the stopped processes of its session | nil
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

// process:errors() -> the last 4 KiB that it wrote to stderr
static int lua_process_errors(lua_State *lua) {
    struct process *process = check_process(lua);
    if (process->running) process_read_available(process, true);
    lua_pushlstring(lua, process->tail, process->tail_length);
    return 1;
}

static int lua_process_pid(lua_State *lua) {
    lua_pushinteger(lua, check_process(lua)->pid);
    return 1;
}

// If an error has left the process running, it has some time for its end: a launcher that is killed leaves
// files.
static int lua_process_collect(lua_State *lua) {
    struct process *process = check_process(lua);
    if (process->running) kill(process->pid, SIGTERM);
    process_close(process, COLLECT_GRACE);
    free(process->lines.data);
    process->lines = (struct text){0};
    return 0;
}

// interrupted() -> number and name of the last signal that was caught | nil
static int lua_process_interrupted(lua_State *lua) {
    int number = signals_caught();
    if (number == 0) return 0;
    lua_pushinteger(lua, number);
    lua_pushfstring(lua, "SIG%s", sigabbrev_np(number));
    return 2;
}

// hold_signals(whether): blocks or unblocks SIGINT, SIGTERM and SIGHUP, for steps that must not be
// interrupted.
static int lua_process_hold_signals(lua_State *lua) {
    sigset_t set;
    signals_fill(&set);
    sigprocmask(lua_toboolean(lua, 1) ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    return 0;
}

// now() -> seconds of the monotonic clock
static int lua_process_now(lua_State *lua) {
    lua_pushnumber(lua, process_now());
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
        {"__gc", lua_process_collect},
        {"__close", lua_process_collect},
        {NULL, NULL},
    };
    static const struct luaL_Reg functions[] = {
        {"start", lua_process_start},
        {"can_confine", lua_process_can_confine},
        {"interrupted", lua_process_interrupted},
        {"hold_signals", lua_process_hold_signals},
        {"now", lua_process_now},
        {NULL, NULL},
    };
    make_type(lua, PROCESS_TYPE, methods);
    luaL_newlib(lua, functions);
    return 1;
}
