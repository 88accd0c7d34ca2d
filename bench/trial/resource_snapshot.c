// Counts of this process's resources; see resource_snapshot.h.
#include "resource_snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks/isolation_process.h"

const char *const resource_names[RESOURCE_KINDS] = {
    [RESOURCE_DEVICE] = "device memory",     [RESOURCE_CHILDREN] = "child processes",
    [RESOURCE_THREADS] = "threads",          [RESOURCE_FILES] = "open files",
    [RESOURCE_SHARED] = "files in /dev/shm", [RESOURCE_STRAYS] = "files in /dev/shm",
    [RESOURCE_BYTES] = "mapped bytes",       [RESOURCE_HEAP] = "heap memory"};

// Significant growth. Mapped bytes stay the same to the page after warm-up; but the memory of a sanitizer,
// which malloc's counts do not include, varies in larger pieces.
#if defined __SANITIZE_ADDRESS__
enum { LEAST_BYTES = 128 << 10 };
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { LEAST_BYTES = 128 << 10 };
#else
enum { LEAST_BYTES = 1 };
#endif
#else
enum { LEAST_BYTES = 1 };
#endif
static const long least_growth[RESOURCE_KINDS] = {1, 1, 1, 1, 1, 1, LEAST_BYTES, 1};

// Inode numbers of this process's files in /dev/shm; files beyond this number count as strays.
enum { MOST_SEEN = 1024 };
static struct {
    size_t count;
    ino_t of[MOST_SEEN];
} seen;

static long entries_of(const char *folder) {
    long count = 0;
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (list != NULL) closedir(list);
    return count;
}

static bool is_seen(ino_t number) {
    size_t i = 0;
    while (i < seen.count && seen.of[i] != number) i++;
    return i < seen.count;
}

static void see(ino_t number) {
    if (seen.count < MOST_SEEN && !is_seen(number)) seen.of[seen.count++] = number;
}

static void look_at_maps(void) {
    char line[512];
    unsigned long number;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        bool is_shared = strstr(line, " /dev/shm/") != NULL;
        if (is_shared && sscanf(line, "%*s %*s %*s %*s %lu", &number) == 1) see((ino_t)number);
    }
    if (maps != NULL) fclose(maps);
}

static void look_at_open_files(void) {
    struct stat folder, facts;
    DIR *list = opendir("/proc/self/fd");
    bool is_known = list != NULL && stat("/dev/shm", &folder) == 0;
    for (const struct dirent *entry; is_known && (entry = readdir(list)) != NULL;) {
        bool is_there = fstatat(dirfd(list), entry->d_name, &facts, 0) == 0;
        if (is_there && S_ISREG(facts.st_mode) && facts.st_dev == folder.st_dev) see(facts.st_ino);
    }
    if (list != NULL) closedir(list);
}

void snapshot_note_shared_files(void) {
    look_at_maps();
    look_at_open_files();
}

// Files of this user that appeared during the trial, except the MPI library's, which their names show.
static void count_shared_files(time_t since, struct resource_snapshot *snapshot) {
    DIR *list = opendir("/dev/shm");
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        struct stat facts;
        bool is_ours = strncmp(entry->d_name, "gentables-", 10) == 0 ||
                       strncmp(entry->d_name, "vader_segment.", 14) == 0 ||
                       strncmp(entry->d_name, "sm_segment.", 11) == 0;
        if (entry->d_name[0] == '.' || is_ours) continue;
        if (fstatat(dirfd(list), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (facts.st_uid != geteuid() || facts.st_ctime < since) continue;
        snapshot->count[is_seen(facts.st_ino) ? RESOURCE_SHARED : RESOURCE_STRAYS]++;
    }
    if (list != NULL) closedir(list);
}

// Whether malloc's counts are exact: with glibc's malloc, and without its thread caches, which the program
// that starts a trial disables.
static bool heap_is_exact(void) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables != NULL && strstr(tunables, "glibc.malloc.tcache_count=0") != NULL;
#else
    return false;
#endif
}

// Mapped bytes without Open MPI's files, some of which outlive their communicator, and without the heap,
// which may grow by fragmentation.
static long mapped_bytes(FILE *maps) {
    char line[512];
    unsigned long begin, end, bytes = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        bool is_of_mpi = strstr(line, "ompi") != NULL || strstr(line, "vader_segment") != NULL;
        if (is_of_mpi || strstr(line, "[heap]") != NULL) continue;
        if (sscanf(line, "%lx-%lx", &begin, &end) == 2) bytes += end - begin;
    }
    return (long)bytes;
}

// Bytes allocated by malloc. Subtracts from *mapped those that malloc mapped separately.
static long heap_bytes(long *mapped) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    *mapped -= (long)info.hblkhd;
    return (long)(info.uordblks + info.hblkhd);
#else
    (void)mapped;
    return 0;
#endif
}

struct resource_snapshot snapshot_take(time_t since) {
    static char buffer[BUFSIZ]; // so that reading the maps allocates nothing
    struct resource_snapshot snapshot = {{[RESOURCE_CHILDREN] = isolation_children(),
                                          [RESOURCE_THREADS] = entries_of("/proc/self/task"),
                                          [RESOURCE_FILES] = entries_of("/proc/self/fd")}};
    count_shared_files(since, &snapshot);
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return snapshot;
    setvbuf(maps, buffer, _IOFBF, sizeof buffer);
    malloc_trim(0);
    snapshot.count[RESOURCE_BYTES] = mapped_bytes(maps);
    long heap = heap_bytes(&snapshot.count[RESOURCE_BYTES]);
    if (heap_is_exact()) snapshot.count[RESOURCE_HEAP] = heap;
    fclose(maps);
    return snapshot;
}

int snapshot_growth(const struct resource_snapshot *before, const struct resource_snapshot *after) {
    int kind = 0;
    while (kind < RESOURCE_KINDS && after->count[kind] - before->count[kind] < least_growth[kind]) kind++;
    return kind;
}
