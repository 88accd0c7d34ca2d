// What a process holds, to be compared: child processes, threads, open files, shared and mapped memory, the
// heap; and of its device's memory, which who asks fills in.
#ifndef BENCH_RESOURCE_SNAPSHOT_H
#define BENCH_RESOURCE_SNAPSHOT_H

#include <time.h>

// In the order in which they are told: what takes memory of a device may take others for it. Files in
// /dev/shm are of two kinds, for nobody can ask who made one: those that this process has been seen to have
// open or mapped, and strays of the same user, which may be another program's.
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

// Remembers the files in /dev/shm that this process has open or mapped now.
void snapshot_note_shared_files(void);

// Now. Files in /dev/shm count from `since` on. The heap is counted to the byte, or, where that cannot be
// (resource_snapshot.c), not at all.
struct resource_snapshot snapshot_take(time_t since);

// The first kind of which there is more after than before, as far as that tells; RESOURCE_KINDS: none.
int snapshot_growth(const struct resource_snapshot *before, const struct resource_snapshot *after);

#endif
