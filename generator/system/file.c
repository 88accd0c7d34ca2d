// Files: mapped to read, replaced atomically, folders listed and made; see file.h. Lua: require "core.file".
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bindings.h"
#include "child.h"
#include "cleanup.h"

bool file_open(const char *path, struct file_map *map, struct problem *problem) {
    *map = (struct file_map){"", 0};
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    bool is_open = file >= 0 && fstat(file, &status) == 0, is_file = is_open && S_ISREG(status.st_mode);
    void *data = NULL;
    if (is_file && status.st_size > 0) {
        data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    int reason = is_open && !is_file ? 0 : errno;
    if (file >= 0) close(file);
    if (!is_file || data == MAP_FAILED) {
        problem_set(problem, "%s: %s%s", path,
                    reason == 0 ? "is not a file" : "cannot be read: ", reason == 0 ? "" : strerror(reason));
        errno = reason;
        return false;
    }
    map->size = (size_t)status.st_size;
    if (data != NULL) map->data = data;
    return true;
}

void file_close(struct file_map *map) {
    if (map->size > 0) munmap((void *)map->data, map->size);
    *map = (struct file_map){"", 0};
}

static bool write_all(int file, const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(file, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

// The mode of the file that is replaced, or that of a new file under the umask.
static mode_t mode_for(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0) return status.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

// Opens the folder of `path`. Returns -1 and errno if that fails.
static int open_folder_of(const char *path, int flags) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash == NULL ? snprintf(folder, sizeof folder, ".")
                               : snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    errno = ENAMETOOLONG;
    if (length < 0 || (size_t)length >= sizeof folder) return -1;
    return open(folder, flags | O_CLOEXEC, 0600);
}

// Syncs the folder of `path`, so that the rename survives a power failure. Not all file systems support it;
// failures are ignored.
static void sync_folder_of(const char *path) {
    int file = open_folder_of(path, O_RDONLY | O_DIRECTORY);
    if (file < 0) return;
    (void)fsync(file);
    close(file);
}

// Ends the stage without replacing the file.
static bool stage_failed(struct file_stage *stage, int reason, struct problem *problem) {
    const char *path = stage->path, *rest = stage->temporary == NULL ? "" : "; the old file is unchanged";
    file_stage_drop(stage);
    return problem_set(problem, "%s: cannot be written: %s%s", path, strerror(reason), rest);
}

// Whether a path is that of a device or a pipe; also if a shell has redirected it to a file (/dev/stdout).
static bool is_written_through(const char *path, bool exists, const struct stat *status) {
    static const char *const folders[] = {"/dev/", "/proc/"};
    if (!exists) return false;
    if (S_ISDIR(status->st_mode)) return false;
    if (!S_ISREG(status->st_mode)) return true;
    struct stat link;
    bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (is_link && strncmp(path, folders[i], strlen(folders[i])) == 0) return true;
    }
    return false;
}

// Opens a device, a pipe, or what a shell has redirected to a file. Such a file is written at the position of
// the shell's descriptor: another descriptor would begin at the first byte, and replace what the file has.
static int open_through(const char *path, const struct stat *status) {
    enum { MOST_REDIRECTED = 9 };
    (void)fflush(NULL); // earlier output
    for (int file = STDOUT_FILENO; S_ISREG(status->st_mode) && file <= MOST_REDIRECTED; file++) {
        struct stat other;
        bool is_same = fstat(file, &other) == 0 && other.st_dev == status->st_dev &&
                       other.st_ino == status->st_ino && (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
        if (is_same) return fcntl(file, F_DUPFD_CLOEXEC, 0);
    }
    return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

// Where a path leads. NULL where memory is short, or it is a link to nothing; the reason is in errno.
static char *target_of(const char *path, bool exists) {
    struct stat link;
    if (exists) return realpath(path, NULL);
    if (lstat(path, &link) != 0) return strdup(path);
    errno = ENOENT;
    return NULL;
}

const char *file_stage_name(const struct file_stage *stage, char name[STAGE_NAME_SIZE]) {
    if (stage->is_named) return stage->temporary;
    snprintf(name, STAGE_NAME_SIZE, "/proc/self/fd/%d", stage->file);
    return name;
}

// Opens a file without a name. False where the file system has none, or /proc, which names them later, is
// missing.
static bool open_unnamed(struct file_stage *stage) {
    char name[STAGE_NAME_SIZE];
    stage->file = open_folder_of(stage->target, O_TMPFILE | O_WRONLY);
    if (stage->file < 0) return false;
    if (access(file_stage_name(stage, name), F_OK) == 0) return true;
    close(stage->file);
    stage->file = -1;
    return false;
}

static bool open_named(struct file_stage *stage) {
    sigset_t former;
    signals_block(&former); // until the name is in the list
    stage->file = mkostemps(stage->temporary, (int)strlen(".tmp"), O_CLOEXEC);
    int reason = errno;
    stage->is_named = stage->file >= 0;
    if (stage->is_named) cleanup_add(stage->temporary);
    sigprocmask(SIG_SETMASK, &former, NULL);
    errno = reason;
    return stage->is_named;
}

static const char temporary_suffix[] = ".XXXXXX.tmp";

static bool open_temporary(struct file_stage *stage) {
    stage->temporary = malloc(strlen(stage->target) + sizeof temporary_suffix);
    if (stage->temporary == NULL) return false;
    strcpy(stage->temporary, stage->target);
    strcat(stage->temporary, temporary_suffix);
    if (open_unnamed(stage) || open_named(stage)) return true;
    int reason = errno;
    free(stage->temporary);
    stage->temporary = NULL;
    errno = reason;
    return false;
}

// Replaces the XXXXXX of the temporary name.
static bool choose_name(char *temporary) {
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345";
    char *at = temporary + strlen(temporary) - strlen("XXXXXX.tmp");
    unsigned char random[6];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    for (size_t i = 0; i < sizeof random; i++) at[i] = digits[random[i] % (sizeof digits - 1)];
    return true;
}

// Gives the file its temporary name: renaming needs one, and a link replaces nothing.
static bool give_name(struct file_stage *stage) {
    enum { MOST_TRIES = 100 };
    if (stage->is_named) return true;
    char unnamed[STAGE_NAME_SIZE];
    file_stage_name(stage, unnamed);
    for (int i = 0; i < MOST_TRIES; i++) {
        if (!choose_name(stage->temporary)) return false;
        sigset_t former;
        signals_block(&former); // until the name is in the list
        stage->is_named = linkat(AT_FDCWD, unnamed, AT_FDCWD, stage->temporary, AT_SYMLINK_FOLLOW) == 0;
        int reason = errno;
        if (stage->is_named) cleanup_add(stage->temporary);
        sigprocmask(SIG_SETMASK, &former, NULL);
        errno = reason;
        if (stage->is_named || reason != EEXIST) return stage->is_named;
    }
    return false;
}

bool file_stage_open(struct file_stage *stage, const char *path, struct problem *problem) {
    struct stat status;
    bool exists = stat(path, &status) == 0;
    *stage = (struct file_stage){.file = -1, .path = path};
    if (is_written_through(path, exists, &status)) {
        stage->file = open_through(path, &status);
    } else if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
    } else {
        stage->target = target_of(path, exists);
        if (stage->target != NULL) open_temporary(stage);
    }
    if (stage->file >= 0) return true;
    int reason = errno;
    free(stage->target);
    stage->target = NULL;
    return problem_set(problem, "%s: cannot be written: %s", path, strerror(reason));
}

bool file_stage_write(struct file_stage *stage, const char *data, size_t size, struct problem *problem) {
    return write_all(stage->file, data, size) || stage_failed(stage, errno, problem);
}

// Completes the file under its temporary name.
static bool stage_close(struct file_stage *stage, bool sync, struct problem *problem) {
    bool whole = stage->temporary == NULL || (fchmod(stage->file, mode_for(stage->target)) == 0 &&
                                              (!sync || fsync(stage->file) == 0) && give_name(stage));
    if (!whole) return stage_failed(stage, errno, problem);
    int file = stage->file;
    stage->file = -1;
    return close(file) == 0 || stage_failed(stage, errno, problem);
}

static bool stage_place(struct file_stage *stage, struct problem *problem) {
    bool is_placed = stage->temporary == NULL || rename(stage->temporary, stage->target) == 0;
    if (!is_placed) return stage_failed(stage, errno, problem);
    if (stage->temporary != NULL) cleanup_forget(stage->temporary);
    stage->is_named = false;
    file_stage_drop(stage);
    return true;
}

bool file_stage_commit(struct file_stage *stage, bool sync, struct problem *problem) {
    return stage_close(stage, sync, problem) && stage_place(stage, problem);
}

void file_stage_drop(struct file_stage *stage) {
    if (stage->file >= 0) close(stage->file);
    stage->file = -1;
    if (stage->is_named) unlink(stage->temporary);
    if (stage->is_named) cleanup_forget(stage->temporary);
    free(stage->temporary);
    free(stage->target);
    stage->temporary = stage->target = NULL;
    stage->is_named = false;
}

// Stages a whole file.
static bool stage_text(struct file_stage *stage, const struct file_text *file, bool sync,
                       struct problem *problem) {
    return file_stage_open(stage, file->path, problem) &&
           file_stage_write(stage, file->data, file->size, problem) && stage_close(stage, sync, problem);
}

bool file_write_all(const struct file_text files[], size_t count, bool sync, struct problem *problem) {
    struct file_stage *stages = calloc(count + 1, sizeof *stages);
    if (stages == NULL) return problem_set(problem, "out of memory");
    size_t staged = 0, placed = 0;
    while (staged < count && stage_text(&stages[staged], &files[staged], sync, problem)) staged++;
    bool written = staged == count;
    while (written && placed < count) written = stage_place(&stages[placed++], problem);
    while (placed < staged) file_stage_drop(&stages[placed++]);
    free(stages);
    if (written && sync && count > 0) sync_folder_of(files[0].path);
    return written;
}

bool file_write(const char *path, const char *data, size_t size, bool sync, struct problem *problem) {
    return file_write_all(&(struct file_text){path, data, size}, 1, sync, problem);
}

bool file_holds(const char *path, const char *data, size_t size) {
    struct file_map map;
    struct problem ignored;
    if (!file_open(path, &map, &ignored)) return false;
    errno = 0;
    bool same = map.size == size && (size == 0 || memcmp(map.data, data, size) == 0);
    file_close(&map);
    return same;
}

// ---- Lua --------------------------------------------------------------------------------------

// Returns nil, message, for a failed read with errno. Raises a failure in place of that for errors of the
// system (failure_is_of_system): a caller that accepts missing files would take the file for a missing one.
static int fail_to_read(lua_State *lua, const char *path) {
    bool is_raised = failure_is_of_system(errno);
    lua_pushnil(lua);
    lua_pushfstring(lua, "%s: cannot be read: %s", path, strerror(errno));
    return is_raised ? failure_raise(lua) : 2;
}

// read(path [, limit]) -> text, at most its first `limit` bytes, or nil, message
static int lua_read(lua_State *lua) {
    struct file_map map;
    struct problem problem;
    size_t limit = (size_t)luaL_optinteger(lua, 2, LUA_MAXINTEGER);
    if (!file_open(luaL_checkstring(lua, 1), &map, &problem)) {
        return errno == 0 ? push_failed(lua, problem.text) : fail_to_read(lua, lua_tostring(lua, 1));
    }
    lua_pushlstring(lua, map.data, map.size < limit ? map.size : limit);
    file_close(&map);
    return 1;
}

// write(path, text [, sync]) -> true, or nil, message
static int lua_write(lua_State *lua) {
    size_t size;
    const char *path = luaL_checkstring(lua, 1), *text = luaL_checklstring(lua, 2, &size);
    struct problem problem;
    if (!file_write(path, text, size, lua_toboolean(lua, 3), &problem)) return push_failed(lua, problem.text);
    return push_true(lua);
}

// write_all(list of { path, text } [, sync]) -> true, or nil, message; all files are in one folder
static int lua_write_all(lua_State *lua) {
    struct file_text files[MOST_FILES];
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t count = (size_t)lua_rawlen(lua, 1);
    bool sync = lua_toboolean(lua, 2); // before any push, which could become argument 2
    luaL_argcheck(lua, count <= MOST_FILES, 1, "too many files");
    if (!lua_checkstack(lua, 3 * MOST_FILES)) return luaL_error(lua, "out of memory");
    for (size_t i = 0; i < count; i++) {
        lua_geti(lua, 1, (lua_Integer)i + 1);
        lua_geti(lua, -1, 1);
        lua_geti(lua, -2, 2);
        files[i].path = luaL_checkstring(lua, -2);
        files[i].data = luaL_checklstring(lua, -1, &files[i].size);
    }
    struct problem problem;
    if (!file_write_all(files, count, sync, &problem)) return push_failed(lua, problem.text);
    return push_true(lua);
}

// holds(path, text) -> whether the file holds exactly this text
static int lua_holds(lua_State *lua) {
    size_t size;
    const char *path = luaL_checkstring(lua, 1), *text = luaL_checklstring(lua, 2, &size);
    bool holds = file_holds(path, text, size);
    if (!holds && failure_is_of_system(errno)) return fail_to_read(lua, path);
    lua_pushboolean(lua, holds);
    return 1;
}

// exists(path) -> whether there is a file or folder
static int lua_exists(lua_State *lua) {
    lua_pushboolean(lua, access(luaL_checkstring(lua, 1), F_OK) == 0);
    return 1;
}

// status(path) -> "file", "folder" or "other", size in bytes, time of the last change in ns; or nil, message
static int lua_file_status(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    struct stat status;
    if (stat(path, &status) != 0) return fail_to_read(lua, path);
    lua_pushstring(lua, S_ISREG(status.st_mode) ? "file" : S_ISDIR(status.st_mode) ? "folder" : "other");
    lua_pushinteger(lua, status.st_size);
    lua_pushinteger(lua, (lua_Integer)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec);
    return 3;
}

// real_path(path) -> the absolute path without links, or nil, message
static int lua_real_path(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    char *found = realpath(path, NULL);
    if (found == NULL) return fail_to_read(lua, path);
    lua_pushstring(lua, found);
    free(found);
    return 1;
}

// temporary_folder(name) -> the path of a new folder in TMPDIR that only this user can enter, with a name
// that begins with `name`, or nil, message. It is to be removed by remove_tree; a signal that ends the
// process removes it, too.
static int lua_temporary_folder(lua_State *lua) {
    struct problem problem;
    char path[PATH_MAX];
    if (!temporary_folder_make(luaL_checkstring(lua, 1), path, &problem))
        return push_failed(lua, problem.text);
    lua_pushstring(lua, path);
    return 1;
}

// remove_tree(path) -> removes the file, or the folder with everything in it, as far as that can be removed.
// Links are not followed. What belongs to another user stays; the end of the program removes a rest.
static int lua_remove_tree(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    struct stat status;
    if (lstat(path, &status) == 0 && status.st_uid == geteuid()) cleanup_remove(path);
    bool is_left = lstat(path, &status) == 0 && status.st_uid == geteuid();
    if (!is_left) cleanup_forget(path); // else the end of the program removes it
    return 0;
}

static int is_inside(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

// list(folder) -> the names in it without . and .., sorted, or nil, message
static int lua_list(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    struct dirent **entries;
    int count = scandir(path, &entries, is_inside, alphasort);
    if (count < 0) return fail_to_read(lua, path);
    lua_createtable(lua, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(lua, entries[i]->d_name);
        lua_seti(lua, -2, i + 1);
        free(entries[i]);
    }
    free(entries);
    return 1;
}

// make_folder(path) -> true, or nil, message; makes missing parents too; an existing folder is no error
static int lua_make_folder(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    struct problem problem;
    char part[PATH_MAX];
    int length = snprintf(part, sizeof part, "%s", path);
    if (length < 0 || (size_t)length >= sizeof part) {
        problem_set(&problem, "%s: too long a name", path);
        return push_failed(lua, problem.text);
    }
    for (char *at = part + 1; length > 0 && at <= part + length; at++) {
        if (*at != '/' && *at != '\0') continue;
        char kept = *at;
        *at = '\0';
        struct stat status;
        int reason = mkdir(part, 0777) == 0 ? 0 : errno;
        bool is_there = reason != 0 && stat(part, &status) == 0;
        if (reason != 0 && !(is_there && S_ISDIR(status.st_mode))) {
            if (is_there)
                problem_set(&problem, "%s: is not a folder", part);
            else
                problem_set(&problem, "%s: the folder cannot be made: %s", part, strerror(reason));
            return push_failed(lua, problem.text);
        }
        *at = kept;
    }
    return push_true(lua);
}

int luaopen_core_file(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"read", lua_read},
        {"write", lua_write},
        {"write_all", lua_write_all},
        {"holds", lua_holds},
        {"list", lua_list},
        {"exists", lua_exists},
        {"make_folder", lua_make_folder},
        {"status", lua_file_status},
        {"real_path", lua_real_path},
        {"temporary_folder", lua_temporary_folder},
        {"remove_tree", lua_remove_tree},
        {NULL, NULL},
    };
    luaL_newlib(lua, functions);
    return 1;
}
