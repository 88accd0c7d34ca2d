// gentables: starts Lua, hands it the C modules, runs the verb; nothing else.
//
// The Lua files and the templates are found beside the program, in ../share/gentables: in an installed tree
// they are files, in a build tree links to the sources. GENTABLES_HOME overrides that.
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modules.h"

enum { EXIT_USAGE = 2 };

// Writes the folder with generator/ and templates/ to `home`. Returns 0, or -1 if it cannot be told.
static int find_home(char home[PATH_MAX]) {
    const char *from_environment = getenv("GENTABLES_HOME");
    if (from_environment != NULL) {
        int written = snprintf(home, PATH_MAX, "%s", from_environment);
        return written < PATH_MAX ? 0 : -1;
    }
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return -1;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL) return -1;
    *slash = '\0';
    int written = snprintf(home, PATH_MAX, "%s/../share/gentables", program);
    return written < PATH_MAX ? 0 : -1;
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

// Sets package.path and the global `gentables = { home, version, program }`.
static void set_globals(lua_State *lua, const char *home, const char *program) {
    lua_getglobal(lua, "package");
    lua_pushfstring(lua, "%s/generator/?.lua;", home);
    lua_getfield(lua, -2, "path");
    lua_concat(lua, 2);
    lua_setfield(lua, -2, "path");
    lua_pop(lua, 1);
    lua_createtable(lua, 0, 3);
    lua_pushstring(lua, home);
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

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    char home[PATH_MAX];
    if (find_home(home) != 0) {
        fprintf(stderr, "gentables: cannot tell where its own files are; set GENTABLES_HOME\n");
        return EXIT_USAGE;
    }
    lua_State *lua = luaL_newstate();
    if (lua == NULL) {
        fprintf(stderr, "gentables: out of memory\n");
        return EXIT_USAGE;
    }
    preload_modules(lua);
    set_globals(lua, home, argv[0]);
    int status = run_verb(lua, argc, argv);
    if (status < 0) {
        fprintf(stderr, "gentables: internal error: %s\n", lua_tostring(lua, -1));
        status = EXIT_USAGE;
    }
    lua_close(lua);
    return status;
}
