// gentables: starts Lua, registers the C modules, runs the verb.
//
// Lua files and templates are in ../share/gentables, relative to the program: in an installed tree they are
// files, in a build tree links to the sources. GENTABLES_HOME overrides that folder. Loadable modules, such
// as core.json, are in ../lib/gentables.
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <lualib.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modules.h"
#include "system/cleanup.h"

enum { EXIT_WORK = 1, EXIT_USAGE = 2 };

// The folders that the program reads: `home` with generator/ and templates/, `modules` with core/json.so.
struct folders {
    char home[PATH_MAX];
    char modules[PATH_MAX];
};

// Writes `folder`/`below` to `path`. Returns whether it fits.
static bool join(char path[PATH_MAX], const char *folder, const char *below) {
    int written = snprintf(path, PATH_MAX, "%s%s", folder, below);
    return written >= 0 && written < PATH_MAX;
}

// Returns false if /proc/self/exe cannot be read, or a path is too long.
static bool find_folders(struct folders *folders) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return false;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    const char *home = getenv("GENTABLES_HOME");
    bool found =
        home != NULL ? join(folders->home, home, "") : join(folders->home, program, "/../share/gentables");
    return found && join(folders->modules, program, "/../lib/gentables");
}

static int traceback(lua_State *lua) {
    if (lua_type(lua, 1) == LUA_TSTRING) luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
    return 1;
}

static void preload_modules(lua_State *lua) {
    luaL_openlibs(lua);
    luaL_getsubtable(lua, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    for (const struct luaL_Reg *module = gentables_modules; module->name != NULL; module++) {
        lua_pushcfunction(lua, module->func);
        lua_setfield(lua, -2, module->name);
    }
    lua_pop(lua, 1);
}

// Puts FOLDER/PATTERN in front of package[`field`].
static void search_first(lua_State *lua, const char *field, const char *folder, const char *pattern) {
    lua_getglobal(lua, "package");
    lua_pushfstring(lua, "%s/%s;", folder, pattern);
    lua_getfield(lua, -2, field);
    lua_concat(lua, 2);
    lua_setfield(lua, -2, field);
    lua_pop(lua, 1);
}

// Sets package.path, package.cpath and the global `gentables = { home, version, program }`.
static void set_globals(lua_State *lua, const struct folders *folders, const char *program) {
    search_first(lua, "path", folders->home, "generator/?.lua");
    search_first(lua, "cpath", folders->modules, "?.so");
    lua_createtable(lua, 0, 3);
    lua_pushstring(lua, folders->home);
    lua_setfield(lua, -2, "home");
    lua_pushstring(lua, GENTABLES_VERSION);
    lua_setfield(lua, -2, "version");
    lua_pushstring(lua, program);
    lua_setfield(lua, -2, "program");
    lua_setglobal(lua, "gentables");
}

// Runs require("verbs").main(argv...); returns the exit code.
static int run_verb(lua_State *lua, int argc, char **argv) {
    lua_pushcfunction(lua, traceback);
    lua_getglobal(lua, "require");
    lua_pushstring(lua, "verbs");
    if (lua_pcall(lua, 1, 1, 1) != LUA_OK) return -1;
    lua_getfield(lua, -1, "main");
    lua_remove(lua, -2);
    luaL_checkstack(lua, argc, "too many arguments");
    for (int i = 1; i < argc; i++) lua_pushstring(lua, argv[i]);
    if (lua_pcall(lua, argc - 1, 1, 1) != LUA_OK) return -1;
    return (int)lua_tointeger(lua, -1);
}

// Whether standard output is a pipe without a reader, as after `| head`; that is not an error.
static bool reader_has_left(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file above the limit of its size is a failed write
    cleanup_on_signals();
    signal(SIGCHLD, SIG_DFL); // may be inherited as ignored, and then children could not be waited for
    struct folders folders;
    if (!find_folders(&folders)) {
        fprintf(stderr, "gentables: its files are not found: /proc/self/exe cannot be read\n");
        return EXIT_USAGE;
    }
    lua_State *lua = luaL_newstate();
    if (lua == NULL) {
        fprintf(stderr, "gentables: out of memory\n");
        return EXIT_USAGE;
    }
    preload_modules(lua);
    set_globals(lua, &folders, argv[0]);
    int status = run_verb(lua, argc, argv);
    if (status < 0) {
        fprintf(stderr, "gentables: internal error: %s\n", lua_tostring(lua, -1));
        status = EXIT_USAGE;
    }
    lua_close(lua);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0 && !reader_has_left()) {
        fprintf(stderr, "gentables: standard output cannot be written\n");
        status = EXIT_WORK;
    }
    return status;
}
