// Counts of what this process holds; see held.h.
#include "held.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const held_names[HELD_KINDS] = {"device memory",     "threads",      "open files",
                                            "files in /dev/shm", "mapped bytes", "heap memory"};

// Growth that tells. Mapped bytes stay as they are to the page once all is warm; but a sanitizer's own
// memory, of which malloc's counts say nothing, comes and goes in larger pieces.
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
static const long least_growth[HELD_KINDS] = {1, 1, 1, 1, LEAST_BYTES, 1};

static long entries_of(const char *folder) {
    long count = 0;
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (list != NULL) closedir(list);
    return count;
}

// Files of this user that came during the trial. The MPI library's own are named after it.
static long shared_files(time_t since) {
    long count = 0;
    DIR *list = opendir("/dev/shm");
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        struct stat facts;
        bool is_ours = strncmp(entry->d_name, "gentables-", 10) == 0 ||
                       strncmp(entry->d_name, "vader_segment.", 14) == 0 ||
                       strncmp(entry->d_name, "sm_segment.", 11) == 0;
        if (entry->d_name[0] == '.' || is_ours) continue;
        if (fstatat(dirfd(list), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
        count += facts.st_uid == geteuid() && facts.st_ctime >= since;
    }
    if (list != NULL) closedir(list);
    return count;
}

// Whether malloc's counts are to the byte: where threads keep nothing for later, which whoever starts a trial
// sees to, and it is glibc's malloc, and none of a sanitizer in its place.
static bool heap_is_exact(void) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    const char *tunables = getenv("GLIBC_TUNABLES");
    return tunables != NULL && strstr(tunables, "glibc.malloc.tcache_count=0") != NULL;
#else
    return false;
#endif
}

// Bytes that are mapped, but for Open MPI's own files, some of which stay after their communicator, and the
// heap, which may grow by holes.
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

// What malloc has given out. The part of it that is mapped for itself comes off the mapped bytes.
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

struct held held_now(time_t since) {
    static char buffer[BUFSIZ]; // nothing is allocated between the two
    struct held held = {
        {0, entries_of("/proc/self/task"), entries_of("/proc/self/fd"), shared_files(since), 0, 0}};
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return held;
    setvbuf(maps, buffer, _IOFBF, sizeof buffer);
    malloc_trim(0);
    held.count[HELD_BYTES] = mapped_bytes(maps);
    long heap = heap_bytes(&held.count[HELD_BYTES]);
    if (heap_is_exact()) held.count[HELD_HEAP] = heap;
    fclose(maps);
    return held;
}

int held_more(const struct held *before, const struct held *after) {
    int kind = 0;
    while (kind < HELD_KINDS && after->count[kind] - before->count[kind] < least_growth[kind]) kind++;
    return kind;
}
