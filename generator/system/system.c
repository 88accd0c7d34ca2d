// require "core.system": functions that Lua's library lacks: syncing and locking files, the terminal, hashes,
// the identity of files, the environment, a limit on memory. On failure they return nil, message.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bindings.h"

enum { USUAL_COLUMNS = 80, LOCK_POLL_NS = 50000000 };

static int terminal_columns(void) {
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return USUAL_COLUMNS;
    return size.ws_col;
}

// FNV-1a (Fowler, Noll, Vo), 64 bits. Not for security.
static const uint64_t FNV_BASIS = 0xcbf29ce484222325, FNV_PRIME = 0x100000001b3;

static uint64_t fnv1a_from(uint64_t hash, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * FNV_PRIME;
    return hash;
}

static uint64_t fnv1a(const char *data, size_t size) {
    return fnv1a_from(FNV_BASIS, data, size);
}

// The hash of long data: FNV-1a over words of 8 bytes, in four lanes that a CPU computes at once; then over
// the lanes. A change of one word always changes it.
enum { LANES = 4, BLOCK = LANES * 8, BUFFER = 1 << 18 };

static void hash_blocks(uint64_t lanes[LANES], const unsigned char *data, size_t blocks) {
    for (; blocks > 0; blocks--, data += BLOCK) {
        for (int i = 0; i < LANES; i++) {
            uint64_t word;
            memcpy(&word, data + 8 * i, 8);
            lanes[i] = (lanes[i] ^ word) * FNV_PRIME;
            lanes[i] ^= lanes[i] >> 32;
        }
    }
}

// Reads until `size` bytes or the end of the file. Returns their number, or -1 and errno.
static ssize_t read_fully(int file, unsigned char *data, size_t size) {
    size_t have = 0;
    while (have < size) {
        ssize_t count = read(file, data + have, size - have);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        if (count == 0) break;
        have += (size_t)count;
    }
    return (ssize_t)have;
}

// Sets the hash of a file's bytes. On failure returns false, with errno.
static bool hash_open_file(int file, uint64_t *hash) {
    unsigned char *data = malloc(BUFFER);
    uint64_t lanes[LANES] = {FNV_BASIS, FNV_BASIS + 1, FNV_BASIS + 2, FNV_BASIS + 3};
    ssize_t count = -1;
    *hash = FNV_BASIS;
    while (data != NULL && (count = read_fully(file, data, BUFFER)) == BUFFER) {
        hash_blocks(lanes, data, BUFFER / BLOCK);
    }
    if (count >= 0) {
        size_t blocks = (size_t)count / BLOCK;
        hash_blocks(lanes, data, blocks);
        *hash = fnv1a_from(*hash, data + blocks * BLOCK, (size_t)count - blocks * BLOCK);
    }
    free(data);
    for (int i = 0; i < LANES; i++) *hash = fnv1a_from(*hash, &lanes[i], sizeof lanes[i]);
    return count >= 0;
}

// ---- Lua --------------------------------------------------------------------------------------

static FILE *check_file(lua_State *lua) {
    luaL_Stream *stream = luaL_checkudata(lua, 1, LUA_FILEHANDLE);
    luaL_argcheck(lua, stream->closef != NULL, 1, "a closed file");
    return stream->f;
}

// sync(file): flushes the file to the disk.
static int lua_system_sync(lua_State *lua) {
    FILE *file = check_file(lua);
    return luaL_fileresult(lua, fflush(file) == 0 && fsync(fileno(file)) == 0, NULL);
}

// lock(file [, seconds]): locks it against other processes until it and the copies that children inherited
// are closed. Fails if another process holds the lock for that long (default 0), or removed the file before
// it was locked. Raises a failure if the system cannot lock.
static int lua_system_lock(lua_State *lua) {
    int file = fileno(check_file(lua));
    double patience = luaL_optnumber(lua, 2, 0);
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            lua_pushfstring(lua, "a file cannot be locked: %s", strerror(errno));
            return failure_raise(lua);
        }
        if (patience <= 0) return luaL_fileresult(lua, 0, NULL);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_NS}, NULL);
        patience -= (double)LOCK_POLL_NS / 1e9;
    }
    struct stat status;
    bool there = fstat(file, &status) == 0 && status.st_nlink > 0;
    if (!there) errno = ESTALE;
    return luaL_fileresult(lua, there, NULL);
}

// is_terminal(file) -> boolean
static int lua_system_is_terminal(lua_State *lua) {
    lua_pushboolean(lua, isatty(fileno(check_file(lua))));
    return 1;
}

// columns() -> width of the terminal on stderr
static int lua_system_columns(lua_State *lua) {
    lua_pushinteger(lua, terminal_columns());
    return 1;
}

static int lua_system_is_root(lua_State *lua) {
    lua_pushboolean(lua, geteuid() == 0);
    return 1;
}

// program() -> path of the program that runs | nil, message
static int lua_system_program(lua_State *lua) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length < 0) return luaL_fileresult(lua, 0, "/proc/self/exe");
    lua_pushlstring(lua, path, (size_t)length);
    return 1;
}

static int push_hash(lua_State *lua, uint64_t hash) {
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    lua_pushstring(lua, text);
    return 1;
}

// hash(text) -> FNV-1a, 64 bits, as 16 hex digits
static int lua_system_hash(lua_State *lua) {
    size_t size;
    const char *data = luaL_checklstring(lua, 1, &size);
    return push_hash(lua, fnv1a(data, size));
}

// hash_file(path) -> the hash of a file's bytes, as 16 hex digits; not that of `hash`. For files of any size.
static int lua_system_hash_file(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t hash = 0;
    bool done = file >= 0 && hash_open_file(file, &hash);
    int reason = errno;
    if (file >= 0) close(file);
    if (done) return push_hash(lua, hash);
    errno = reason;
    return luaL_fileresult(lua, 0, path);
}

static lua_Integer nanoseconds(struct timespec time) {
    return (lua_Integer)time.tv_sec * 1000000000 + time.tv_nsec;
}

// identity(path) -> { device, inode, size (bytes), changed (ns), status_changed (ns) }: a file with the same
// values was neither replaced nor written. `changed` is the time of its contents, which programs can set;
// `status_changed` that of any change, also of its name, owner or mode, which the system sets. Numbers of
// devices are those of one boot of one machine. Or nil, message.
static int lua_system_identity(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    struct stat status;
    if (stat(path, &status) != 0) return luaL_fileresult(lua, 0, path);
    const struct {
        const char *name;
        lua_Integer value;
    } fields[] = {
        {"device", (lua_Integer)status.st_dev},          {"inode", (lua_Integer)status.st_ino},
        {"size", (lua_Integer)status.st_size},           {"changed", nanoseconds(status.st_mtim)},
        {"status_changed", nanoseconds(status.st_ctim)},
    };
    lua_createtable(lua, 0, sizeof fields / sizeof *fields);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushinteger(lua, fields[i].value);
        lua_setfield(lua, -2, fields[i].name);
    }
    return 1;
}

// environment() -> { NAME = "value"... }
static int lua_system_environment(lua_State *lua) {
    lua_newtable(lua);
    for (char **at = environ; *at != NULL; at++) {
        const char *value = strchr(*at, '=');
        if (value == NULL) continue;
        lua_pushlstring(lua, *at, (size_t)(value - *at));
        lua_pushstring(lua, value + 1);
        lua_rawset(lua, -3);
    }
    return 1;
}

// The memory that may still be allocated, and the allocator that is replaced.
struct budget {
    lua_Alloc allocate;
    void *context;
    size_t left;
    bool is_reached;
};

static void *allocate_within(void *of, void *block, size_t old_size, size_t size) {
    struct budget *budget = of;
    size_t held = block != NULL ? old_size : 0;
    if (size > held && size - held > budget->left) {
        budget->is_reached = true;
        return NULL;
    }
    void *moved = budget->allocate(budget->context, block, old_size, size);
    if (moved != NULL || size == 0) budget->left = budget->left + held - size;
    return moved;
}

// within(bytes, fn, ...) -> whether fn(...) needed more memory than this, and what pcall(fn, ...) returns.
static int lua_system_within(lua_State *lua) {
    struct budget budget = {.left = (size_t)luaL_checkinteger(lua, 1)};
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    budget.allocate = lua_getallocf(lua, &budget.context);
    lua_setallocf(lua, allocate_within, &budget);
    int status = lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0);
    lua_setallocf(lua, budget.allocate, budget.context);
    luaL_checkstack(lua, 2, NULL);
    lua_pushboolean(lua, budget.is_reached);
    lua_pushboolean(lua, status == LUA_OK);
    lua_rotate(lua, 2, 2);
    return lua_gettop(lua) - 1;
}

int luaopen_core_system(lua_State *lua) {
    static const struct luaL_Reg functions[] = {
        {"sync", lua_system_sync},
        {"lock", lua_system_lock},
        {"is_terminal", lua_system_is_terminal},
        {"columns", lua_system_columns},
        {"is_root", lua_system_is_root},
        {"program", lua_system_program},
        {"hash", lua_system_hash},
        {"hash_file", lua_system_hash_file},
        {"identity", lua_system_identity},
        {"within", lua_system_within},
        {"environment", lua_system_environment},
        {NULL, NULL},
    };
    luaL_newlib(lua, functions);
    return 1;
}
