// Memory of the machine and limits of control groups; see memory_limit.h. In a container the path of a group
// may be partly invisible: the visible part of it counts.
#include "memory_limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 8192 };

// The names of a version's files; `reclaimable` is a line of memory.stat.
struct files {
    const char *limit, *used, *reclaimable;
};
static const struct files first_version = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                           "total_inactive_file"},
                          second_version = {"memory.max", "memory.current", "inactive_file"};

// A value of one group; UINT64_MAX: it has no limit.
typedef uint64_t group_value(const char *folder, const struct files *files);

static FILE *open_in(const char *folder, const char *name) {
    char path[PATH_SIZE];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length < (int)sizeof path ? fopen(path, "re") : NULL;
}

// The number in a file; `otherwise` if it has none, such as "max".
static uint64_t number_of(const char *folder, const char *name, uint64_t otherwise) {
    unsigned long long bytes = 0;
    FILE *file = open_in(folder, name);
    bool is_there = file != NULL && fscanf(file, "%llu", &bytes) == 1;
    if (file != NULL) fclose(file);
    return is_there ? bytes : otherwise;
}

// The number after a word at the beginning of a line; `otherwise` without one.
static uint64_t number_behind(const char *folder, const char *name, const char *word, uint64_t otherwise) {
    char line[256];
    unsigned long long number = 0;
    bool is_there = false;
    size_t length = strlen(word);
    FILE *file = open_in(folder, name);
    while (file != NULL && !is_there && fgets(line, sizeof line, file) != NULL) {
        is_there = strncmp(line, word, length) == 0 && sscanf(line + length, " %llu", &number) == 1;
    }
    if (file != NULL) fclose(file);
    return is_there ? number : otherwise;
}

static uint64_t limit_of(const char *folder, const struct files *files) {
    return number_of(folder, files->limit, UINT64_MAX);
}

static uint64_t left_of(const char *folder, const struct files *files) {
    uint64_t limit = limit_of(folder, files), used = number_of(folder, files->used, 0);
    if (limit == UINT64_MAX) return limit;
    uint64_t reclaimable = number_behind(folder, "memory.stat", files->reclaimable, 0);
    used -= reclaimable < used ? reclaimable : used;
    return used < limit ? limit - used : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// The smallest value of the group at `path` and of its parents, up to the mount point.
static uint64_t smallest_on_path(const char *mount, const char *path, group_value *value,
                                 const struct files *files) {
    char folder[PATH_SIZE];
    int length = snprintf(folder, sizeof folder, "%s%s", mount, path);
    if (length >= (int)sizeof folder) return UINT64_MAX;
    uint64_t smallest = value(folder, files);
    while (strlen(folder) > strlen(mount)) {
        *strrchr(folder, '/') = '\0';
        smallest = smaller(smallest, value(folder, files));
    }
    return smallest;
}

// Whether a list such as "cpu,memory" has the word "memory".
static bool names_memory(const char *controllers) {
    const char word[] = "memory";
    for (const char *at = controllers; (at = strstr(at, word)) != NULL; at += sizeof word - 1) {
        char after = at[sizeof word - 1];
        if ((at == controllers || at[-1] == ',') && (after == '\0' || after == ',')) return true;
    }
    return false;
}

// By a line "ID:CONTROLLERS:PATH" of /proc/self/cgroup; without controllers it is of version 2.
static uint64_t value_by_line(const char *root, char *line, group_value *value) {
    char mount[PATH_SIZE / 2];
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL || path[1] != '/') return UINT64_MAX;
    *controllers++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool is_second = controllers[0] == '\0';
    if (!is_second && !names_memory(controllers)) return UINT64_MAX;
    int length = snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, is_second ? "" : "/memory");
    if (length >= (int)sizeof mount) return UINT64_MAX;
    return smallest_on_path(mount, path, value, is_second ? &second_version : &first_version);
}

// The smallest value of all groups of this process.
static uint64_t smallest_of_all(const char *root, group_value *value) {
    char *line = NULL;
    size_t room = 0;
    uint64_t smallest = UINT64_MAX;
    FILE *groups = open_in(root, "proc/self/cgroup");
    while (groups != NULL && getline(&line, &room, groups) >= 0) {
        smallest = smaller(smallest, value_by_line(root, line, value));
    }
    free(line);
    if (groups != NULL) fclose(groups);
    return smallest;
}

uint64_t machine_memory_limit(const char *root) {
    return smallest_of_all(root, limit_of);
}

uint64_t machine_memory_left(const char *root) {
    uint64_t kilobytes = number_behind(root, "proc/meminfo", "MemAvailable:", UINT64_MAX >> 10);
    return smaller(kilobytes << 10, smallest_of_all(root, left_of));
}

uint64_t machine_memory_bytes(const char *root) {
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return smaller(all, machine_memory_limit(root));
}
