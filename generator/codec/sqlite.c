// SQLite databases for Lua, read only: core.sqlite.
//
//   sqlite.open(path) -> database | nil, message
//   database:query(sql, each, ...) -> true | nil, message     binds ... to the ? of sql, and calls
//                                                             each(columns...) for every row
//   database:close()                                          the garbage collector closes it, too
//
// NULL is nil; text and blobs are texts. query raises the errors of `each`.
//
// A query may take STEPS steps of SQLite's machine, and STEPS_PER_BYTE for each byte of the file; a row of a
// table takes some tens. A view that does not end takes more.
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#define DATABASE_TYPE  "gentables.sqlite"
#define STATEMENT_TYPE "gentables.sqlite_statement"

// query's arguments.
enum { DATABASE = 1, SQL, EACH, FIRST_BOUND };

enum { STEPS = 10000000, STEPS_PER_BYTE = 100, STEPS_PER_LOOK = 1000 };

struct database {
    sqlite3 *sqlite;          // NULL: closed
    sqlite3_int64 size;       // of the file, in bytes
    sqlite3_int64 steps_left; // of the query that runs
};

static struct database *check_database(lua_State *lua) {
    struct database *database = luaL_checkudata(lua, DATABASE, DATABASE_TYPE);
    luaL_argcheck(lua, database->sqlite != NULL, DATABASE, "a closed database");
    return database;
}

// SQLite calls it after STEPS_PER_LOOK steps. Not 0 ends the query.
static int look(void *argument) {
    struct database *database = argument;
    database->steps_left -= STEPS_PER_LOOK;
    return database->steps_left < 0;
}

static void allow_steps(struct database *database) {
    database->steps_left = STEPS + database->size * STEPS_PER_BYTE;
}

static const char *problem_of(const struct database *database) {
    if (database->steps_left < 0) return "a query does not end: the file has a view without an end";
    return sqlite3_errmsg(database->sqlite);
}

static int fail_with(lua_State *lua, const char *message) {
    lua_pushnil(lua);
    lua_pushstring(lua, message);
    return 2;
}

// open(path)
static int lua_sqlite_open(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    struct database *database = lua_newuserdatauv(lua, sizeof *database, 0);
    *database = (struct database){.sqlite = NULL};
    luaL_setmetatable(lua, DATABASE_TYPE);
    struct stat status;
    if (stat(path, &status) != 0) return fail_with(lua, strerror(errno));
    if (!S_ISREG(status.st_mode)) return fail_with(lua, "is not a file");
    database->size = status.st_size;
    allow_steps(database);
    int opened = sqlite3_open_v2(path, &database->sqlite, SQLITE_OPEN_READONLY, NULL);
    if (database->sqlite == NULL) return fail_with(lua, "out of memory");
    sqlite3_progress_handler(database->sqlite, STEPS_PER_LOOK, look, database);
    if (opened == SQLITE_OK) {
        opened = sqlite3_exec(database->sqlite, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    return opened == SQLITE_OK ? 1 : fail_with(lua, problem_of(database));
}

static int lua_sqlite_close(lua_State *lua) {
    struct database *database = luaL_checkudata(lua, DATABASE, DATABASE_TYPE);
    sqlite3_close_v2(database->sqlite);
    database->sqlite = NULL;
    return 0;
}

static int finalize(lua_State *lua) {
    sqlite3_stmt **held = luaL_checkudata(lua, 1, STATEMENT_TYPE);
    sqlite3_finalize(*held);
    *held = NULL;
    return 0;
}

static void bind(lua_State *lua, sqlite3_stmt *statement, int index, int argument) {
    size_t length;
    switch (lua_type(lua, argument)) {
    case LUA_TNIL: sqlite3_bind_null(statement, index); break;
    case LUA_TNUMBER:
        if (lua_isinteger(lua, argument)) {
            sqlite3_bind_int64(statement, index, lua_tointeger(lua, argument));
        } else {
            sqlite3_bind_double(statement, index, lua_tonumber(lua, argument));
        }
        break;
    default: {
        const char *text = luaL_checklstring(lua, argument, &length);
        sqlite3_bind_text(statement, index, text, (int)length, SQLITE_TRANSIENT);
    }
    }
}

static void push_column(lua_State *lua, sqlite3_stmt *statement, int column) {
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: lua_pushnil(lua); break;
    case SQLITE_INTEGER: lua_pushinteger(lua, sqlite3_column_int64(statement, column)); break;
    case SQLITE_FLOAT: lua_pushnumber(lua, sqlite3_column_double(statement, column)); break;
    default: {
        const char *bytes = sqlite3_column_blob(statement, column);
        lua_pushlstring(lua, bytes == NULL ? "" : bytes, (size_t)sqlite3_column_bytes(statement, column));
    }
    }
}

// database:query(sql, each, ...)
static int lua_sqlite_query(lua_State *lua) {
    struct database *database = check_database(lua);
    const char *sql = luaL_checkstring(lua, SQL);
    luaL_checktype(lua, EACH, LUA_TFUNCTION);
    int bound = lua_gettop(lua) - EACH;
    sqlite3_stmt **held = lua_newuserdatauv(lua, sizeof *held, 0);
    *held = NULL;
    luaL_setmetatable(lua, STATEMENT_TYPE);
    allow_steps(database);
    int status = sqlite3_prepare_v2(database->sqlite, sql, -1, held, NULL);
    if (status != SQLITE_OK) return fail_with(lua, problem_of(database));
    for (int i = 0; i < bound; i++) bind(lua, *held, i + 1, FIRST_BOUND + i);
    int columns = sqlite3_column_count(*held);
    luaL_checkstack(lua, columns + 1, "too many columns");
    while ((status = sqlite3_step(*held)) == SQLITE_ROW) {
        lua_pushvalue(lua, EACH);
        for (int column = 0; column < columns; column++) push_column(lua, *held, column);
        lua_call(lua, columns, 0);
    }
    if (status != SQLITE_DONE) return fail_with(lua, problem_of(database));
    sqlite3_finalize(*held);
    *held = NULL;
    lua_pushboolean(lua, 1);
    return 1;
}

int luaopen_core_sqlite(lua_State *lua);
int luaopen_core_sqlite(lua_State *lua) {
    static const luaL_Reg methods[] = {
        {"query", lua_sqlite_query}, {"close", lua_sqlite_close}, {"__gc", lua_sqlite_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", lua_sqlite_open}, {NULL, NULL}};
    luaL_newmetatable(lua, STATEMENT_TYPE);
    lua_pushcfunction(lua, finalize);
    lua_setfield(lua, -2, "__gc");
    luaL_newmetatable(lua, DATABASE_TYPE);
    luaL_setfuncs(lua, methods, 0);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -2, "__index");
    lua_pop(lua, 2);
    luaL_newlib(lua, functions);
    return 1;
}
