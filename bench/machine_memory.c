// Memory of the machine and limits of control groups; see machine_memory.h. A process may be told of a path
// that its own view of the groups does not have, as in a container: what is there of it counts.
#include "machine_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 8192 };

// Without a file, and where it says "max", there is no limit.
static uint64_t limit_of(const char *folder, const char *name) {
    char path[PATH_SIZE];
    unsigned long long bytes = 0;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < (int)sizeof path ? fopen(path, "r") : NULL;
    bool is_limited = file != NULL && fscanf(file, "%llu", &bytes) == 1;
    if (file != NULL) fclose(file);
    return is_limited ? bytes : UINT64_MAX;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// The smallest limit of the group at `path` and of those around it, up to where they are mounted.
static uint64_t smallest_on_path(const char *mount, const char *path, const char *name) {
    char folder[PATH_SIZE];
    int length = snprintf(folder, sizeof folder, "%s%s", mount, path);
    if (length >= (int)sizeof folder) return UINT64_MAX;
    uint64_t smallest = limit_of(folder, name);
    while (strlen(folder) > strlen(mount)) {
        *strrchr(folder, '/') = '\0';
        smallest = smaller(smallest, limit_of(folder, name));
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
static uint64_t limit_by_line(const char *root, char *line) {
    char mount[PATH_SIZE / 2];
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL || path[1] != '/') return UINT64_MAX;
    *controllers++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool is_second = controllers[0] == '\0';
    if (!is_second && !names_memory(controllers)) return UINT64_MAX;
    int length = snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, is_second ? "" : "/memory");
    if (length >= (int)sizeof mount) return UINT64_MAX;
    return smallest_on_path(mount, path, is_second ? "memory.max" : "memory.limit_in_bytes");
}

uint64_t machine_memory_limit(const char *root) {
    char path[PATH_SIZE], *line = NULL;
    size_t room = 0;
    uint64_t smallest = UINT64_MAX;
    int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *groups = length < (int)sizeof path ? fopen(path, "r") : NULL;
    while (groups != NULL && getline(&line, &room, groups) >= 0) {
        smallest = smaller(smallest, limit_by_line(root, line));
    }
    free(line);
    if (groups != NULL) fclose(groups);
    return smallest;
}

uint64_t machine_memory_bytes(const char *root) {
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return smaller(all, machine_memory_limit(root));
}
