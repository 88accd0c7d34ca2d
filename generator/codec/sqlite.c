// SQLite databases for Lua: core.sqlite.
//
//   sqlite.open(path) -> database | nil, message              read only
//   sqlite.create(path) -> database | nil, message            to write; made if missing. Waits up to a
//                                                             minute for other writers
//   sqlite.memory() -> database | nil, message                a new one that no file has yet
//   database:write(path) -> true | nil, message               writes it as a file, whole or not at all
//   database:query(sql, each, ...) -> true | nil, message     binds ... to the ? of sql, and calls
//                                                             each(columns...) for every row
//   database:insert(sql, rows) -> true | nil, message         runs sql for each { value... } of a list; a
//                                                             value that is false is NULL
//   database:close()                                          the garbage collector closes it, too
//
// NULL is nil; text and blobs are texts. query raises the errors of `each`.
//
// A query may take STEPS steps of SQLite's machine, and STEPS_PER_BYTE for each byte of the file; a row of a
// table takes some tens. The limit ends queries of a view without an end.
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bindings.h"
#include "system/file.h"

#define DATABASE_TYPE  "gentables.sqlite"
#define STATEMENT_TYPE "gentables.sqlite_statement"

// query's arguments.
enum { DATABASE = 1, SQL, EACH, FIRST_BOUND };
enum { ROWS = 3 }; // of insert

enum { BUSY_MS = 60000 };

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

// The errno of the last open for writing; 0 if that succeeded. If it fails, SQLite tries to open the file for
// reading, and reports only the reason of that.
static int write_reason;

// SQLite calls this in place of open().
static int open_and_note(const char *path, int flags, int mode) {
    int file = open(path, flags, mode);
    if ((flags & O_ACCMODE) == O_RDWR) write_reason = file < 0 ? errno : 0;
    return file;
}

static void note_failed_opens(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    bool is_replaceable = vfs != NULL && vfs->iVersion >= 3 && vfs->xSetSystemCall != NULL;
    if (is_replaceable) (void)vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_and_note);
}

// The errno of the system call that made the last call fail; 0: none. SQLite reports a failed read as a
// damaged file.
static int system_error(const struct database *database) {
    int reason = 0;
    switch (sqlite3_errcode(database->sqlite)) {
    case SQLITE_CANTOPEN: return write_reason != 0 ? write_reason : sqlite3_system_errno(database->sqlite);
    case SQLITE_READONLY: return write_reason;
    case SQLITE_IOERR:
        sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_LAST_ERRNO, &reason);
        return reason != 0 ? reason : sqlite3_system_errno(database->sqlite);
    case SQLITE_CORRUPT:
        sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_LAST_ERRNO, &reason);
        return reason == EIO ? EIO : 0;
    default: return 0;
    }
}

// Returns nil and why the last call failed.
static int fail_as(lua_State *lua, const struct database *database) {
    if (database->steps_left < 0) {
        return push_failed(lua, "a query does not end: the file has a view without an end");
    }
    const char *message = sqlite3_errmsg(database->sqlite);
    int reason = system_error(database);
    if (reason == 0) return push_failed(lua, message);
    return push_failed(lua, lua_pushfstring(lua, "%s: %s", message, strerror(reason)));
}

static struct database *push_database(lua_State *lua) {
    struct database *database = lua_newuserdatauv(lua, sizeof *database, 0);
    *database = (struct database){.sqlite = NULL};
    luaL_setmetatable(lua, DATABASE_TYPE);
    return database;
}

static int open_with(lua_State *lua, int flags) {
    const char *path = luaL_checkstring(lua, 1);
    struct database *database = push_database(lua);
    struct stat status;
    bool is_there = stat(path, &status) == 0, creates = flags & SQLITE_OPEN_CREATE;
    if (!is_there && !creates) return push_failed(lua, strerror(errno));
    if (is_there && !S_ISREG(status.st_mode)) return push_failed(lua, "is not a file");
    database->size = is_there ? status.st_size : 0;
    allow_steps(database);
    write_reason = 0;
    int opened = sqlite3_open_v2(path, &database->sqlite, flags, NULL);
    if (database->sqlite == NULL) return push_failed(lua, "out of memory");
    sqlite3_progress_handler(database->sqlite, STEPS_PER_LOOK, look, database);
    sqlite3_busy_timeout(database->sqlite, BUSY_MS);
    if (opened == SQLITE_OK) {
        opened = sqlite3_exec(database->sqlite, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    if (opened != SQLITE_OK) return fail_as(lua, database);
    bool is_refused = creates && sqlite3_db_readonly(database->sqlite, "main") == 1;
    if (!is_refused) return 1;
    const char *reason = write_reason != 0 ? strerror(write_reason) : "the file is read-only";
    return push_failed(lua, lua_pushfstring(lua, "cannot be written: %s", reason));
}

// open(path)
static int lua_sqlite_open(lua_State *lua) {
    return open_with(lua, SQLITE_OPEN_READONLY);
}

// create(path)
static int lua_sqlite_create(lua_State *lua) {
    return open_with(lua, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

// memory()
static int lua_sqlite_memory(lua_State *lua) {
    struct database *database = push_database(lua);
    int opened = sqlite3_open(":memory:", &database->sqlite);
    if (database->sqlite == NULL) return push_failed(lua, "out of memory");
    return opened == SQLITE_OK ? 1 : fail_as(lua, database);
}

// database:write(path)
static int lua_sqlite_write(lua_State *lua) {
    struct database *database = check_database(lua);
    const char *path = luaL_checkstring(lua, 2);
#if SQLITE_VERSION_NUMBER >= 3036000 // earlier ones may lack sqlite3_serialize
    struct problem problem;
    sqlite3_int64 size;
    unsigned char *bytes = sqlite3_serialize(database->sqlite, "main", &size, 0);
    if (bytes == NULL) return push_failed(lua, "out of memory");
    bool is_written = file_write(path, (const char *)bytes, (size_t)size, false, &problem);
    sqlite3_free(bytes);
    return is_written ? push_true(lua) : push_failed(lua, problem.text);
#else
    (void)database;
    return push_failed(
        lua, lua_pushfstring(lua, "%s: SQLite 3.36 or later is required, and this is " SQLITE_VERSION, path));
#endif
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

// Binds a value. Raises an error if memory is short: NULL would be bound in its place.
static void bind(lua_State *lua, sqlite3_stmt *statement, int index, int argument) {
    size_t length;
    int status;
    switch (lua_type(lua, argument)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN: status = sqlite3_bind_null(statement, index); break;
    case LUA_TNUMBER:
        if (lua_isinteger(lua, argument)) {
            status = sqlite3_bind_int64(statement, index, lua_tointeger(lua, argument));
        } else {
            status = sqlite3_bind_double(statement, index, lua_tonumber(lua, argument));
        }
        break;
    default: {
        const char *text = luaL_checklstring(lua, argument, &length);
        status = sqlite3_bind_text(statement, index, text, (int)length, SQLITE_TRANSIENT);
    }
    }
    if (status != SQLITE_OK) luaL_error(lua, "%s", sqlite3_errstr(status));
}

static void push_column(lua_State *lua, sqlite3_stmt *statement, int column) {
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: lua_pushnil(lua); break;
    case SQLITE_INTEGER: lua_pushinteger(lua, sqlite3_column_int64(statement, column)); break;
    case SQLITE_FLOAT: lua_pushnumber(lua, sqlite3_column_double(statement, column)); break;
    default: {
        const char *bytes = sqlite3_column_blob(statement, column); // NULL: empty, or no memory for it
        bool is_short = bytes == NULL && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM;
        if (is_short) luaL_error(lua, "out of memory");
        lua_pushlstring(lua, bytes == NULL ? "" : bytes, (size_t)sqlite3_column_bytes(statement, column));
    }
    }
}

// Pushes a prepared statement, which the garbage collector finalizes; NULL: an error of the database.
static sqlite3_stmt **prepare(lua_State *lua, struct database *database) {
    const char *sql = luaL_checkstring(lua, SQL);
    sqlite3_stmt **held = lua_newuserdatauv(lua, sizeof *held, 0);
    *held = NULL;
    luaL_setmetatable(lua, STATEMENT_TYPE);
    allow_steps(database);
    int status = sqlite3_prepare_v2(database->sqlite, sql, -1, held, NULL);
    return status == SQLITE_OK ? held : NULL;
}

// database:insert(sql, rows)
static int lua_sqlite_insert(lua_State *lua) {
    struct database *database = check_database(lua);
    luaL_checktype(lua, ROWS, LUA_TTABLE);
    sqlite3_stmt **held = prepare(lua, database);
    if (held == NULL) return fail_as(lua, database);
    lua_Integer rows = luaL_len(lua, ROWS);
    int values = sqlite3_bind_parameter_count(*held);
    for (lua_Integer row = 1; row <= rows; row++) {
        lua_geti(lua, ROWS, row);
        for (int i = 1; i <= values; i++) {
            lua_geti(lua, -1, i);
            bind(lua, *held, i, lua_gettop(lua));
            lua_pop(lua, 1);
        }
        lua_pop(lua, 1);
        allow_steps(database);
        if (sqlite3_step(*held) != SQLITE_DONE) return fail_as(lua, database);
        sqlite3_reset(*held);
    }
    sqlite3_finalize(*held);
    *held = NULL;
    return push_true(lua);
}

// database:query(sql, each, ...)
static int lua_sqlite_query(lua_State *lua) {
    struct database *database = check_database(lua);
    luaL_checktype(lua, EACH, LUA_TFUNCTION);
    int bound = lua_gettop(lua) - EACH, status;
    sqlite3_stmt **held = prepare(lua, database);
    if (held == NULL) return fail_as(lua, database);
    for (int i = 0; i < bound; i++) bind(lua, *held, i + 1, FIRST_BOUND + i);
    int columns = sqlite3_column_count(*held);
    luaL_checkstack(lua, columns + 1, "too many columns");
    while ((status = sqlite3_step(*held)) == SQLITE_ROW) {
        lua_pushvalue(lua, EACH);
        for (int column = 0; column < columns; column++) push_column(lua, *held, column);
        lua_call(lua, columns, 0);
    }
    if (status != SQLITE_DONE) return fail_as(lua, database);
    sqlite3_finalize(*held);
    *held = NULL;
    return push_true(lua);
}

int luaopen_core_sqlite(lua_State *lua);
int luaopen_core_sqlite(lua_State *lua) {
    note_failed_opens();
    static const luaL_Reg methods[] = {{"query", lua_sqlite_query}, {"insert", lua_sqlite_insert},
                                       {"write", lua_sqlite_write}, {"close", lua_sqlite_close},
                                       {"__gc", lua_sqlite_close},  {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", lua_sqlite_open},
                                         {"create", lua_sqlite_create},
                                         {"memory", lua_sqlite_memory},
                                         {NULL, NULL}};
    static const luaL_Reg of_statement[] = {{"__gc", finalize}, {NULL, NULL}};
    make_type(lua, STATEMENT_TYPE, of_statement);
    make_type(lua, DATABASE_TYPE, methods);
    luaL_newlib(lua, functions);
    return 1;
}
