// Resource snapshot of a process, for leak detection: child processes, threads, open files, shared and mapped
// memory, the heap; and device memory, which the caller fills in.
#ifndef BENCH_RESOURCE_SNAPSHOT_H
#define BENCH_RESOURCE_SNAPSHOT_H

#include <time.h>

// In the order of reports: a leak of device memory may cause leaks of other kinds. There are two kinds of
// files in /dev/shm, since their maker is not recorded: those that this process had open or mapped at some
// check, and strays of the same user, which may be another program's.
enum {
    RESOURCE_DEVICE,
    RESOURCE_CHILDREN,
    RESOURCE_THREADS,
    RESOURCE_FILES,
    RESOURCE_SHARED,
    RESOURCE_STRAYS,
    RESOURCE_BYTES,
    RESOURCE_HEAP,
    RESOURCE_KINDS
};
extern const char *const resource_names[RESOURCE_KINDS];

struct resource_snapshot {
    long count[RESOURCE_KINDS];
};

// Records the files in /dev/shm that this process has open or mapped now.
void snapshot_note_shared_files(void);

// A snapshot now. Files in /dev/shm count if they changed since `since`. The heap is counted to the byte, or,
// if that is impossible (resource_snapshot.c), not at all.
struct resource_snapshot snapshot_take(time_t since);

// The first kind that grew significantly; RESOURCE_KINDS: none.
int snapshot_growth(const struct resource_snapshot *before, const struct resource_snapshot *after);

#endif
