// What a process holds, to be compared: child processes, threads, open files, shared and mapped memory, the
// heap; and of its device's memory, which who asks fills in.
#ifndef BENCH_HELD_H
#define BENCH_HELD_H

#include <time.h>

// In the order in which they are told: what takes memory of a device may take others for it. Files in
// /dev/shm are of two kinds, for nobody can ask who made one: those that this process has been seen to have
// open or mapped, and strays of the same user, which may be another program's.
enum {
    HELD_DEVICE,
    HELD_CHILDREN,
    HELD_THREADS,
    HELD_FILES,
    HELD_SHARED,
    HELD_STRAYS,
    HELD_BYTES,
    HELD_HEAP,
    HELD_KINDS
};
extern const char *const held_names[HELD_KINDS];

struct held {
    long count[HELD_KINDS];
};

// Remembers the files in /dev/shm that this process has open or mapped now.
void held_look(void);

// Now. Files in /dev/shm count from `since` on. The heap is counted to the byte, or, where that cannot be
// (resource_snapshot.c), not at all.
struct held held_now(time_t since);

// The first kind of which there is more after than before, as far as that tells; HELD_KINDS: none.
int held_more(const struct held *before, const struct held *after);

#endif
