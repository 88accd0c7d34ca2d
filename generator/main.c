// gentables: starts Lua, registers the C modules, runs the verb.
//
// Lua files and templates are in ../share/gentables, relative to the program: in an installed tree they are
// files, in a build tree links to the sources. GENTABLES_HOME overrides that folder. Loadable modules, such
// as core.json, are in ../lib/gentables.
#include <dlfcn.h>
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

#include "base/bindings.h"
#include "base/stream_errors.h"
#include "modules.h"
#include "system/cleanup.h"

enum { EXIT_WORK = 1, EXIT_USAGE = 2 };

// The folders that the program reads: `home` with generator/ and templates/, `modules` with core/json.so.
struct folders {
    char home[PATH_MAX];
    char modules[PATH_MAX];
};

// The command line, and where the program's files are.
struct command {
    struct folders folders;
    int argc;
    char **argv;
};

// Writes `folder`/`below` to `path`. Returns whether it fits.
static bool join(char path[PATH_MAX], const char *folder, const char *below) {
    int written = snprintf(path, PATH_MAX, "%s%s", folder, below);
    return written >= 0 && written < PATH_MAX;
}

// Cuts the last name off a path without "..". Returns false if there is none.
static bool cut_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash != NULL) *slash = '\0';
    return slash != NULL;
}

// Returns false if /proc/self/exe cannot be read, or a path is too long.
static bool find_folders(struct folders *folders) {
    char prefix[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", prefix, sizeof prefix - 1);
    if (length < 0) return false;
    prefix[length] = '\0';
    if (!cut_name(prefix)) return false;
    (void)cut_name(prefix); // the root folder has no name
    const char *home = getenv("GENTABLES_HOME");
    bool found =
        home != NULL ? join(folders->home, home, "") : join(folders->home, prefix, "/share/gentables");
    return found && join(folders->modules, prefix, "/lib/gentables");
}

// ---- modules ----------------------------------------------------------------------------------

static bool is_missing(int reason) {
    return reason == ENOENT || reason == ENOTDIR;
}

// Pushes FOLDER/NAME with this ending, for a module name with dots.
static const char *push_path(lua_State *lua, const char *folder, const char *ending) {
    const char *name = luaL_gsub(lua, luaL_checkstring(lua, 1), ".", "/");
    const char *path = lua_pushfstring(lua, "%s/%s%s", folder, name, ending);
    lua_remove(lua, -2);
    return path;
}

// The first upvalue of each searcher.
static const struct command *command_of(lua_State *lua) {
    return lua_touserdata(lua, lua_upvalueindex(1));
}

static int not_found(lua_State *lua, const char *path) {
    lua_pushfstring(lua, "no file '%s'", path);
    return 1;
}

// A searcher of package.searchers: module name -> loader, path; or why there is none.
static int search_lua_file(lua_State *lua) {
    lua_pushfstring(lua, "%s/generator", command_of(lua)->folders.home);
    const char *path = push_path(lua, lua_tostring(lua, -1), ".lua");
    errno = 0;
    int status = luaL_loadfile(lua, path);
    if (status == LUA_ERRFILE && is_missing(errno)) return not_found(lua, path);
    if (status == LUA_ERRFILE) return failure_raise(lua);
    if (status != LUA_OK) return lua_error(lua);
    lua_pushvalue(lua, -2);
    return 2;
}

// Raises a failure with the reason of the dynamic linker, on top of the stack. It names the module, or a
// library that the module needs.
static int refuse_to_load(lua_State *lua, const char *path) {
    const char *reason = lua_tostring(lua, -1), *advice = "";
    const struct command *command = command_of(lua);
    if (strstr(reason, "No such file or directory") != NULL)
        advice = "; install that library, or build gentables on this machine";
    lua_pushfstring(lua, "%s: %s cannot be loaded: %s%s", command->argc > 1 ? command->argv[1] : "", path,
                    reason, advice);
    return failure_raise(lua);
}

static int search_loadable_module(lua_State *lua) {
    const char *path = push_path(lua, command_of(lua)->folders.modules, ".so");
    if (access(path, F_OK) != 0 && is_missing(errno)) return not_found(lua, path);
    lua_pushvalue(lua, lua_upvalueindex(2)); // package.loadlib
    lua_pushvalue(lua, -2);
    const char *name = luaL_gsub(lua, lua_tostring(lua, 1), ".", "_");
    lua_pushfstring(lua, "luaopen_%s", name);
    lua_remove(lua, -2);
    lua_call(lua, 2, 3);
    if (lua_isnil(lua, -3)) {
        lua_pop(lua, 1); // "open" or "init"
        return refuse_to_load(lua, path);
    }
    lua_pop(lua, 2);
    lua_pushvalue(lua, -2);
    return 2;
}

// Whether the command runs a script of the user, which may require modules of the user.
static bool runs_script(const struct command *command) {
    return command->argc > 1 && strcmp(command->argv[1], "lua") == 0;
}

// A searcher that ends the search. The message has the line that requires the module.
static int search_nowhere(lua_State *lua) {
    enum { REQUIRER = 2 };
    const struct folders *folders = &command_of(lua)->folders;
    luaL_where(lua, REQUIRER);
    lua_pushfstring(lua,
                    "module '%s' not found in %s/generator, %s%s; the program belongs in a folder bin beside "
                    "lib/gentables and share/gentables, which GENTABLES_HOME may replace",
                    luaL_checkstring(lua, 1), folders->home, folders->modules,
                    runs_script(command_of(lua)) ? " and package.path" : "");
    lua_concat(lua, 2);
    return failure_raise(lua);
}

// Inserts the function at the top of the stack as number `at` of the list below it.
static void insert(lua_State *lua, lua_Integer at) {
    for (lua_Integer i = luaL_len(lua, -2); i >= at; i--) {
        lua_geti(lua, -2, i);
        lua_seti(lua, -3, i + 1);
    }
    lua_seti(lua, -2, at);
}

// Makes `require` search in the program's folders, and for scripts of the user then in the usual ones. If one
// of its files exists and cannot be read, a module is found nowhere, or memory is short, `require` raises a
// failure with the reason. The usual folders include the current one, which may belong to another user.
static void search_own_files(lua_State *lua, const struct command *command) {
    lua_getglobal(lua, "package");
    lua_getfield(lua, -1, "searchers");
    lua_pushlightuserdata(lua, (void *)command);
    lua_pushcclosure(lua, search_lua_file, 1);
    insert(lua, 2); // after that of package.preload
    lua_pushlightuserdata(lua, (void *)command);
    lua_getfield(lua, -3, "loadlib");
    lua_pushcclosure(lua, search_loadable_module, 2);
    insert(lua, 3);
    lua_pushlightuserdata(lua, (void *)command);
    lua_pushcclosure(lua, search_nowhere, 1);
    insert(lua, runs_script(command) ? luaL_len(lua, -2) + 1 : 4);
    lua_pop(lua, 2);
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

// ---- streams ----------------------------------------------------------------------------------

static unsigned failed_streams; // see base/stream_errors.h

unsigned stream_errors(void) {
    return failed_streams;
}

void rewind(FILE *stream) {
    if (ferror(stream)) failed_streams++;
    (void)fseek(stream, 0, SEEK_SET);
    clearerr(stream);
}

int fclose(FILE *stream) {
    static int (*original)(FILE *);
    if (original == NULL) {
        void *found = dlsym(RTLD_NEXT, "fclose");
        memcpy(&original, &found, sizeof original);
    }
    if (ferror(stream)) failed_streams++;
    return original(stream);
}

// ---- the verb ---------------------------------------------------------------------------------

// Sets the global `gentables = { home, modules, version, program }`.
static void set_global(lua_State *lua, const struct folders *folders, const char *program) {
    lua_createtable(lua, 0, 4);
    lua_pushstring(lua, folders->home);
    lua_setfield(lua, -2, "home");
    lua_pushstring(lua, folders->modules);
    lua_setfield(lua, -2, "modules");
    lua_pushstring(lua, GENTABLES_VERSION);
    lua_setfield(lua, -2, "version");
    lua_pushstring(lua, program);
    lua_setfield(lua, -2, "program");
    lua_setglobal(lua, "gentables");
}

// Runs require("verbs").main(argv...); returns its exit code. All of it is in a protected call, because each
// step may find too little memory.
static int run_verb(lua_State *lua) {
    const struct command *command = lua_touserdata(lua, 1);
    preload_modules(lua);
    search_own_files(lua, command);
    set_global(lua, &command->folders, command->argv[0]);
    push_module(lua, "verbs");
    lua_getfield(lua, -1, "main");
    luaL_checkstack(lua, command->argc, "too many arguments");
    for (int i = 1; i < command->argc; i++) lua_pushstring(lua, command->argv[i]);
    lua_call(lua, command->argc - 1, 1);
    return 1;
}

// Adds a traceback to an error that is a text. Others are failures, for users.
static int traceback(lua_State *lua) {
    if (lua_type(lua, 1) == LUA_TSTRING) luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
    return 1;
}

// Pushes field `name` of a failure without calling metamethods, which could raise an error.
static int failure_field(lua_State *lua, const char *name) {
    lua_pushstring(lua, name);
    return lua_rawget(lua, -2);
}

// Prints the error of run_verb at the top of the stack; returns the exit code.
static int report(lua_State *lua, int status) {
    if (status == LUA_ERRMEM) {
        fprintf(stderr, "gentables: out of memory\n");
        return EXIT_WORK;
    }
    if (lua_istable(lua, -1) && failure_field(lua, "message") == LUA_TSTRING) {
        fprintf(stderr, "gentables: %s\n", lua_tostring(lua, -1));
        return EXIT_WORK;
    }
    fprintf(stderr, "gentables: internal error: %s\n", lua_tostring(lua, -1));
    return EXIT_USAGE;
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
    struct command command = {.argc = argc, .argv = argv};
    if (!find_folders(&command.folders)) {
        fprintf(stderr, "gentables: its files are not found: /proc/self/exe cannot be read\n");
        return EXIT_USAGE;
    }
    lua_State *lua = luaL_newstate();
    if (lua == NULL) {
        fprintf(stderr, "gentables: out of memory\n");
        return EXIT_WORK;
    }
    lua_pushcfunction(lua, traceback); // neither this nor the next two lines allocate
    lua_pushcfunction(lua, run_verb);
    lua_pushlightuserdata(lua, &command);
    int failed = lua_pcall(lua, 1, 1, 1);
    int status = failed == LUA_OK ? (int)lua_tointeger(lua, -1) : report(lua, failed);
    lua_close(lua);
    cleanup_run();
    if ((fflush(stdout) != 0 || ferror(stdout)) && !reader_has_left()) {
        fprintf(stderr, "gentables: standard output cannot be written\n");
        if (status == 0) status = EXIT_WORK;
    }
    return status;
}
