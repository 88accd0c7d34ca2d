// Ranks, shared memory and waiting; see group.h.
//
// Segments are files in /dev/shm that never have a name, so that nothing is left of them however a rank ends:
// rank 0 makes them, of real pages (so that a full /dev/shm is an error here and no SIGBUS later), and the
// others open them through /proc.
#include "host/group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SPINS = 4000,               // some microseconds: longer than a message between idle cores takes
    SPINS_OVERSUBSCRIBED = 1,   // the peer cannot run before we yield
    START_AFTER_NS = 1500,      // every rank has seen the release by then
    POLLS_BETWEEN_CHECKS = 256, // of peers and deadline, once we yield
};

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define FAILURE_BEING_WRITTEN UINT32_MAX

// ---- failure ------------------------------------------------------------------------------------

// The first failure wins. It is told before anybody can see that there is one, and then ends the ranks.
void group_fail(const struct group *group, const char *text) {
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(&group->control->failed_rank, &nobody, FAILURE_BEING_WRITTEN)) return;
    snprintf(group->control->failure, sizeof group->control->failure, "%s", text);
    fprintf(stderr, "gentables-bench: %s\n", text);
    atomic_store_explicit(&group->control->failed_rank, (uint32_t)group->rank + 1, memory_order_release);
}

static bool somebody_failed(const struct group *group) {
    uint32_t failed = atomic_load_explicit(&group->control->failed_rank, memory_order_acquire);
    return failed != 0 && failed != FAILURE_BEING_WRITTEN;
}

const char *group_failure(const struct group *group) {
    return somebody_failed(group) ? group->control->failure : NULL;
}

static bool peers_alive(const struct group *group) {
    for (int rank = 0; rank < group->size; rank++) {
        if (kill(group->control->pids[rank], 0) != 0 && errno == ESRCH) return false;
    }
    return true;
}

void group_blame(const struct group *group) {
    char culprit[FAILURE_SIZE / 2], text[FAILURE_SIZE];
    int rank = watch_culprit(group, group->rank, culprit, sizeof culprit);
    if (rank == group->rank) {
        snprintf(text, sizeof text, "%s, for %g s", culprit, group->timeout_s);
    } else {
        snprintf(text, sizeof text, "%s; rank %d waited for %g s", culprit, group->rank, group->timeout_s);
    }
    group_fail(group, text);
}

// ---- waiting ------------------------------------------------------------------------------------

bool group_poll(struct group *group, uint64_t *polls, uint64_t *since_ns) {
    uint64_t poll = (*polls)++;
    if (poll < group->spin_limit) {
        relax();
        return true;
    }
    sched_yield();
    if ((poll - group->spin_limit) % POLLS_BETWEEN_CHECKS != 0) return true;
    if (somebody_failed(group)) return false;
    uint64_t now = clock_ns();
    if (*since_ns == 0) *since_ns = now;
    if (now - *since_ns < 2000000) return true;
    if (!peers_alive(group)) {
        char culprit[FAILURE_SIZE];
        watch_culprit(group, group->rank, culprit, sizeof culprit);
        group_fail(group, culprit);
        return false;
    }
    if ((double)(now - *since_ns) * 1e-9 < group->timeout_s) return true;
    group_blame(group);
    return false;
}

bool group_wait_slow(struct group *group, const _Atomic uint32_t *counter, uint32_t target) {
    uint64_t polls = 0, since_ns = 0;
    while (!counter_reached(atomic_load_explicit(counter, memory_order_acquire), target)) {
        if (!group_poll(group, &polls, &since_ns)) return false;
    }
    return true;
}

// All ranks arrive; rank 0 tells them to leave, at `start_after_ns` from then.
static bool gather_and_release(struct group *group, uint64_t start_after_ns) {
    struct control *control = group->control;
    uint32_t turn = atomic_load_explicit(&control->arrived[group->rank].value, memory_order_relaxed) + 1;
    atomic_store_explicit(&control->arrived[group->rank].value, turn, memory_order_release);
    if (group->rank != 0) return group_wait(group, &control->released.value, turn);
    for (int rank = 1; rank < group->size; rank++) {
        if (!group_wait(group, &control->arrived[rank].value, turn)) return false;
    }
    if (start_after_ns > 0) {
        atomic_store_explicit(&control->start_at_ns, clock_ns() + start_after_ns, memory_order_relaxed);
    }
    atomic_store_explicit(&control->released.value, turn, memory_order_release);
    return true;
}

bool group_barrier(struct group *group) {
    return gather_and_release(group, 0);
}

bool group_start_together(struct group *group) {
    if (group->oversubscribed)
        return group_barrier(group); // a rank that does not run cannot keep an appointment
    if (!gather_and_release(group, START_AFTER_NS)) return false;
    uint64_t start_at_ns = atomic_load_explicit(&group->control->start_at_ns, memory_order_relaxed);
    while (clock_ns() < start_at_ns) relax();
    return true;
}

bool group_agree(struct group *group, uint64_t *value) {
    if (!group_barrier(group)) return false; // nobody still reads the last decision
    if (group->rank == 0) atomic_store_explicit(&group->control->decision, *value, memory_order_relaxed);
    if (!group_barrier(group)) return false;
    *value = atomic_load_explicit(&group->control->decision, memory_order_relaxed);
    return true;
}

// ---- memory ------------------------------------------------------------------------------

void *group_allocate(struct group *group, size_t bytes, char reason[], size_t reason_size) {
    size_t rounded = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *memory = aligned_alloc(CACHE_LINE, rounded);
    int mine = memory != NULL, all;
    if (memory != NULL) memset(memory, 0, rounded);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, group->comm);
    if (all) return memory;
    free(memory);
    snprintf(reason, reason_size, "out of memory");
    return NULL;
}

// Maps `bytes` of an open file. NULL, and *error, where that cannot be.
static void *map_file(int file, size_t bytes, int *error) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) return memory;
    *error = errno;
    return NULL;
}

// Rank 0: a file without a name; -1 and *error.
static int make_segment(size_t bytes, int *error) {
    int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    *error = file < 0 ? errno : posix_fallocate(file, 0, (off_t)bytes);
    return file;
}

// The others: the file that the process has under this number; -1 and *error.
static int open_segment(int pid, int number, int *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int file = open(path, O_RDWR | O_CLOEXEC);
    *error = file < 0 ? errno : 0;
    return file;
}

void *group_map(struct group *group, size_t bytes, char reason[], size_t reason_size) {
    int error = 0, worst, file = -1;
    void *memory = NULL;
    if (group->rank == 0) file = make_segment(bytes, &error);
    int place[3] = {(int)getpid(), file, error};
    MPI_Bcast(place, 3, MPI_INT, 0, group->comm);
    error = place[2];
    if (error == 0 && group->rank != 0) file = open_segment(place[0], place[1], &error);
    if (error == 0) memory = map_file(file, bytes, &error);
    MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MAX, group->comm); // rank 0 keeps it open until then
    if (file >= 0) close(file);
    if (worst == 0) return memory;
    group_unmap(memory, bytes);
    snprintf(reason, reason_size, "%zu bytes of shared memory: %s", bytes, strerror(worst));
    return NULL;
}

void group_unmap(void *memory, size_t bytes) {
    if (memory != NULL) munmap(memory, bytes);
}

// ---- the group ----------------------------------------------------------------------------------

// Whole cores' worth of time that a container's quota allows (cgroup v2); INT_MAX without one.
static int quota_cores(void) {
    long long quota, period;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    int read =
        file == NULL ? 0 : fscanf(file, "%lld %lld", &quota, &period); // "max 100000" where there is none
    if (file != NULL) fclose(file);
    if (read != 2 || quota <= 0 || period <= 0) return INT_MAX;
    return quota < period ? 1 : (int)(quota / period);
}

// The cores that the ranks together may run on. Bound ranks have one each; the union counts.
static int count_cores(MPI_Comm comm) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    int known = sched_getaffinity(0, sizeof mine, &mine) == 0, all_known;
    cpu_set_t all;
    MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, comm);
    MPI_Allreduce(&known, &all_known, 1, MPI_INT, MPI_MIN, comm);
    int cores = all_known ? CPU_COUNT(&all) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int quota = quota_cores(), least_quota;
    MPI_Allreduce(&quota, &least_quota, 1, MPI_INT, MPI_MIN, comm);
    return cores < least_quota ? cores : least_quota;
}

// As the kernel tells it; what the C library tells is several times too much in some virtual machines.
static size_t last_level_cache_bytes(void) {
    size_t kib = 0;
    for (int index = 0; index < 8; index++) {
        char path[80];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        FILE *file = fopen(path, "r");
        if (file == NULL) break;
        size_t size_kib;
        if (fscanf(file, "%zuK", &size_kib) == 1 && size_kib > kib) kib = size_kib;
        fclose(file);
    }
    return kib << 10;
}

int group_open(struct group *group, MPI_Comm comm, double timeout_s, char reason[], size_t reason_size) {
    *group = (struct group){.comm = comm, .timeout_s = timeout_s, .kernels = kernels_best()};
    MPI_Comm_rank(comm, &group->rank);
    MPI_Comm_size(comm, &group->size);
    if (group->size < 2 || group->size > MAX_RANKS) {
        snprintf(reason, reason_size, "%d ranks; 2 to %d are possible: mpirun -n RANKS gentables-bench",
                 group->size, MAX_RANKS);
        return -1;
    }
    MPI_Comm node;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int node_size = 0;
    MPI_Comm_size(node, &node_size);
    MPI_Comm_free(&node);
    if (node_size != group->size) {
        snprintf(reason, reason_size, "the ranks are on several machines; the host backend needs one");
        return -1;
    }
    group->cores = count_cores(comm);
    group->oversubscribed = group->size > group->cores;
    group->spin_limit = group->oversubscribed ? SPINS_OVERSUBSCRIBED : SPINS;
    group->cache_bytes = last_level_cache_bytes();
    group->control = group_map(group, sizeof *group->control, reason, reason_size);
    if (group->control == NULL) return -1;
    group->control->pids[group->rank] = (int32_t)getpid();
    MPI_Barrier(comm);
    watch_ranks(group);
    return 0;
}

void group_close(struct group *group) {
    watch_ranks(NULL);
    group_unmap(group->control, sizeof *group->control);
}
