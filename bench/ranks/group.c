// Ranks, shared memory and waiting; see group.h.
//
// Segments are files in /dev/shm without a name, so that they vanish however a rank ends. The leader of a
// node makes them and allocates their pages (so that a full /dev/shm is an error here, and not a SIGBUS
// later); the others open them through /proc.
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "culprit.h"
#include "node_link.h"

enum {
    SPINS = 4000,                    // some microseconds: longer than a message between idle cores
    SPINS_THAT_YIELD = 1,            // the peer may need this core, or GPUs or a network take longer
    START_AFTER_NS = 1500,           // every rank has seen the release by then
    POLLS_BETWEEN_CHECKS = 256,      // of peers and deadline, once we yield
    POLLS_BEFORE_SLEEP = 512,        // of ranks that are threads, likewise
    IDLE_US = 50,                    // sleep of waits without a deadline
    LAST_CHECK = 1,                  // lowest bit of *since_ns: one more check after the deadline
    FAILURE_WRITTEN_NS = 1000000000, // for a line: long, even if the writer has lost its processor
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define FAILURE_BEING_WRITTEN UINT32_MAX

// ---- failure ------------------------------------------------------------------------------------

// The first failure counts. It is written to stderr before other ranks can see it and end.
static void note_failure(const struct group *group, const char *text, bool is_from_here) {
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&group->control->failed_rank, &none, FAILURE_BEING_WRITTEN)) return;
    snprintf(group->control->failure, sizeof group->control->failure, "%s", text);
    if (is_from_here) fprintf(stderr, "gentables-bench: %s\n", text);
    atomic_store_explicit(&group->control->failed_rank, (uint32_t)group->rank + 1, memory_order_release);
}

void group_fail(const struct group *group, const char *text) {
    note_failure(group, text, true);
}

void group_take_failure(const struct group *group, const char *text) {
    note_failure(group, text, false);
}

static bool any_rank_failed(const struct group *group) {
    uint32_t failed = atomic_load_explicit(&group->control->failed_rank, memory_order_acquire);
    return failed != 0 && failed != FAILURE_BEING_WRITTEN;
}

// If another rank is just writing its failure, waits for that reason, unless the rank was killed meanwhile.
const char *group_failure(const struct group *group) {
    uint64_t until_ns = clock_ns() + FAILURE_WRITTEN_NS;
    uint32_t failed;
    while ((failed = atomic_load(&group->control->failed_rank)) == FAILURE_BEING_WRITTEN) {
        if (clock_ns() > until_ns) return "a rank failed while it wrote the reason";
        sched_yield();
    }
    return failed != 0 ? group->control->failure : NULL;
}

static bool peers_alive(const struct group *group) {
    for (int i = 0; i < group->ranks_per_node; i++) {
        if (kill(group->control->of[group->local[i]].pid, 0) != 0 && errno == ESRCH) return false;
    }
    return true;
}

void group_fail_late(const struct group *group) {
    char culprit[FAILURE_SIZE / 2], text[FAILURE_SIZE], state;
    if (group->shares_process) { // /proc does not show which thread is late
        snprintf(text, sizeof text, "rank %d waited for %g s", group->rank, group->timeout_s);
        group_fail(group, text);
        return;
    }
    int rank = culprit_name(group, group->rank, &state, culprit, sizeof culprit);
    if (rank == group->rank) {
        snprintf(text, sizeof text, "%s, for %g s", culprit, group->timeout_s);
    } else {
        snprintf(text, sizeof text, "%s; rank %d waited for %g s", culprit, group->rank, group->timeout_s);
    }
    group_fail(group, text);
}

// The limit of a wait. If no rank of this node is at fault, a rank of another one probably is, and its
// neighbours can name it: they get a little more time.
static double patience_s(const struct group *group) {
    char unused[FAILURE_SIZE], state;
    bool is_elsewhere =
        group->nodes > 1 && culprit_name(group, group->rank, &state, unused, sizeof unused) < 0;
    return group->timeout_s + (is_elsewhere ? node_grace_s(group->timeout_s) : 0);
}

// ---- waiting ------------------------------------------------------------------------------------

bool group_poll(struct group *group, uint64_t *polls, uint64_t *since_ns) {
    uint64_t poll = (*polls)++;
    if (group->link != NULL) group->link->progress(group);
    if (poll < group->spin_limit) {
        relax();
        return true;
    }
    // Ranks that are threads wait for GPUs, which time their calls themselves, so a late wake does not
    // matter.
    if (group->shares_process && poll - group->spin_limit > POLLS_BEFORE_SLEEP) {
        usleep(IDLE_US);
    } else {
        sched_yield();
    }
    if ((poll - group->spin_limit) % POLLS_BETWEEN_CHECKS != 0) return true;
    if (any_rank_failed(group)) return false;
    uint64_t now = clock_ns();
    if (*since_ns == 0) *since_ns = now | LAST_CHECK;
    if (now < *since_ns + 2000000) return true;
    if (isinf(group->timeout_s)) usleep(IDLE_US);
    if (!peers_alive(group)) {
        char culprit[FAILURE_SIZE], state;
        culprit_name(group, group->rank, &state, culprit, sizeof culprit);
        group_fail(group, culprit);
        return false;
    }
    double waited_s = (double)(now - *since_ns) * 1e-9;
    if (waited_s < group->timeout_s || waited_s < patience_s(group)) return true;
    if ((*since_ns & LAST_CHECK) != 0) { // this rank itself may have had no processor: one more check
        *since_ns &= ~(uint64_t)LAST_CHECK;
        return true;
    }
    group_fail_late(group);
    return false;
}

bool group_wait_slow(struct group *group, const _Atomic uint32_t *counter, uint32_t target) {
    uint64_t polls = 0, since_ns = 0;
    while (!counter_reached(atomic_load_explicit(counter, memory_order_acquire), target)) {
        if (!group_poll(group, &polls, &since_ns)) return false;
    }
    return true;
}

// All ranks of the node arrive; its leader exchanges `shared` with the other leaders (NULL: the barrier is
// of this node alone), sets the start to `start_after_ns` from then, and releases them.
static bool gather_and_release(struct group *group, uint64_t start_after_ns, const struct shared *shared) {
    struct control *control = group->control;
    uint32_t turn = atomic_load_explicit(&control->of[group->rank].arrived.value, memory_order_relaxed) + 1;
    atomic_store_explicit(&control->of[group->rank].arrived.value, turn, memory_order_release);
    if (group->local_index != 0) return group_wait(group, &control->released.value, turn);
    for (int i = 1; i < group->ranks_per_node; i++) {
        if (!group_wait(group, &control->of[group->local[i]].arrived.value, turn)) return false;
    }
    if (shared != NULL && group->link != NULL && !group->link->exchange(group, shared)) return false;
    if (start_after_ns > 0) {
        atomic_store_explicit(&control->start_at_ns, clock_ns() + start_after_ns, memory_order_relaxed);
    }
    atomic_store_explicit(&control->released.value, turn, memory_order_release);
    return true;
}

static const struct shared nothing = {.root = EVERY_RANK};

bool group_barrier(struct group *group) {
    return gather_and_release(group, 0, &nothing);
}

bool group_node_barrier(struct group *group) {
    return gather_and_release(group, 0, NULL);
}

bool group_start_together(struct group *group) {
    if (group->oversubscribed) return group_barrier(group); // a rank without a processor would miss the start
    if (!gather_and_release(group, START_AFTER_NS, &nothing)) return false;
    uint64_t start_at_ns = atomic_load_explicit(&group->control->start_at_ns, memory_order_relaxed);
    while (clock_ns() < start_at_ns) relax();
    return true;
}

bool group_agree(struct group *group, uint64_t *value) {
    const struct shared decision = {
        .first = &group->control->decision, .bytes = sizeof group->control->decision, .root = 0};
    if (!group_node_barrier(group)) return false; // no rank still reads the last decision
    if (group->rank == 0) atomic_store_explicit(&group->control->decision, *value, memory_order_relaxed);
    if (!gather_and_release(group, 0, &decision)) return false;
    *value = atomic_load_explicit(&group->control->decision, memory_order_relaxed);
    return true;
}

// ---- exchanges ----------------------------------------------------------------------------------

bool group_share(struct group *group, void *first, size_t bytes) {
    const struct shared entries = {
        .first = first, .stride = sizeof(struct rank_entry), .bytes = bytes, .root = EVERY_RANK};
    return gather_and_release(group, 0, &entries);
}

// The room for `bytes` of each rank, or of one of them.
static struct shared exchanged(const struct group *group, size_t bytes, int root) {
    return (struct shared){.first = group->control->of[0].exchange,
                           .stride = sizeof(struct rank_entry),
                           .bytes = bytes,
                           .root = root};
}

// Copies every rank's `mine` to `all`, `stride` bytes apart.
static bool exchange(struct group *group, const void *mine, size_t bytes, void *all, size_t stride) {
    struct control *control = group->control;
    const struct shared shared = exchanged(group, bytes, EVERY_RANK);
    memcpy(control->of[group->rank].exchange, mine, bytes);
    if (!gather_and_release(group, 0, &shared)) return false;
    for (int rank = 0; rank < group->size; rank++) {
        memcpy((char *)all + (size_t)rank * stride, control->of[rank].exchange, bytes);
    }
    return group_node_barrier(group); // all have read, before any rank writes again
}

bool group_exchange(struct group *group, const void *mine, size_t bytes, void *all) {
    return exchange(group, mine, bytes, all, bytes);
}

bool group_broadcast(struct group *group, int root, void *data, size_t bytes) {
    struct control *control = group->control;
    const struct shared shared = exchanged(group, bytes, root);
    if (group->rank == root) memcpy(control->of[root].exchange, data, bytes);
    if (!gather_and_release(group, 0, &shared)) return false;
    if (group->rank != root) memcpy(data, control->of[root].exchange, bytes);
    return group_node_barrier(group);
}

bool group_gather(struct group *group, const void *mine, size_t bytes, void *all) {
    for (size_t at = 0; at < bytes; at += EXCHANGE_SIZE) {
        size_t piece = bytes - at < EXCHANGE_SIZE ? bytes - at : EXCHANGE_SIZE;
        if (!exchange(group, (const char *)mine + at, piece, (char *)all + at, bytes)) return false;
    }
    return true;
}

double group_max(struct group *group, double mine) {
    double all[MAX_RANKS], most = mine;
    if (!group_exchange(group, &mine, sizeof mine, all)) return mine;
    for (int rank = 0; rank < group->size; rank++) most = all[rank] > most ? all[rank] : most;
    return most;
}

long group_min(struct group *group, long mine) {
    long all[MAX_RANKS], least = mine;
    if (!group_exchange(group, &mine, sizeof mine, all)) return mine;
    for (int rank = 0; rank < group->size; rank++) least = all[rank] < least ? all[rank] : least;
    return least;
}

uint64_t group_sum(struct group *group, uint64_t mine) {
    uint64_t all[MAX_RANKS], sum = 0;
    if (!group_exchange(group, &mine, sizeof mine, all)) return mine;
    for (int rank = 0; rank < group->size; rank++) sum += all[rank];
    return sum;
}

bool group_all_right(struct group *group, bool is_right, char reason[], size_t reason_size) {
    long first_bad = group_min(group, is_right ? INT32_MAX : group->rank);
    if (first_bad == INT32_MAX) return true;
    group_broadcast(group, (int)first_bad, reason, reason_size);
    return false;
}

// ---- memory ------------------------------------------------------------------------------

void *group_allocate(struct group *group, size_t bytes, char reason[], size_t reason_size) {
    size_t rounded = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *memory = aligned_alloc(CACHE_LINE, rounded);
    if (memory != NULL) memset(memory, 0, rounded);
    if (group_min(group, memory != NULL)) return memory;
    free(memory);
    snprintf(reason, reason_size, "out of memory");
    return NULL;
}

void *group_map_segment(int file, size_t bytes, int *error) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) return memory;
    *error = errno;
    return NULL;
}

int group_make_segment(size_t bytes, int *error) {
    int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    *error = file < 0 ? errno : posix_fallocate(file, 0, (off_t)bytes);
    return file;
}

int group_open_segment(int pid, int number, int *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int file = open(path, O_RDWR | O_CLOEXEC);
    *error = file < 0 ? errno : 0;
    return file;
}

void *group_map(struct group *group, size_t bytes, char reason[], size_t reason_size) {
    int error = 0, file = -1, all[MAX_RANKS][3];
    void *memory = NULL;
    if (group->local_index == 0) file = group_make_segment(bytes, &error);
    int mine[3] = {(int)getpid(), file, error}, *segment = all[group->local[0]];
    if (!group_exchange(group, mine, sizeof mine, all)) segment = mine;
    error = segment[2];
    if (error == 0 && group->local_index != 0) file = group_open_segment(segment[0], segment[1], &error);
    if (error == 0) memory = group_map_segment(file, bytes, &error);
    int worst = (int)group_max(group, error); // the leader keeps it open until then
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

// The whole cores that a container's CPU quota allows (cgroup v2); INT_MAX without a quota. hwloc covers sets
// of CPUs, not quotas.
static int quota_cores(void) {
    long long quota, period;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    int read = file == NULL ? 0 : fscanf(file, "%lld %lld", &quota, &period); // "max 100000" without a quota
    if (file != NULL) fclose(file);
    if (read != 2 || quota <= 0 || period <= 0) return INT_MAX;
    return quota < period ? 1 : (int)(quota / period);
}

// The number of cores on which the ranks of a node together may run: the union of their affinities. With
// several nodes, the fewest of one.
static int count_cores(struct group *group) {
    cpu_set_t mine, all[MAX_RANKS];
    CPU_ZERO(&mine);
    bool known = sched_getaffinity(0, sizeof mine, &mine) == 0;
    bool exchanged = group_exchange(group, &mine, sizeof mine, all);
    for (int i = 0; exchanged && i < group->ranks_per_node; i++) {
        CPU_OR(&mine, &mine, &all[group->local[i]]);
    }
    long cores = group_min(group, known) ? CPU_COUNT(&mine) : sysconf(_SC_NPROCESSORS_ONLN);
    long quota = group_min(group, quota_cores());
    long usable = cores < quota ? cores : quota;
    return (int)(group->nodes > 1 ? group_min(group, usable) : usable);
}

bool group_size_is_possible(int ranks, int ranks_per_node, char reason[], size_t reason_size) {
    if (ranks_per_node > MAX_NODE_RANKS) {
        snprintf(reason, reason_size, "%d ranks on one node; 1 to %d are possible", ranks_per_node,
                 MAX_NODE_RANKS);
    } else if (ranks > MAX_RANKS) {
        snprintf(reason, reason_size, "%d ranks; 1 to %d are possible on several nodes", ranks, MAX_RANKS);
    }
    return ranks <= MAX_RANKS && ranks_per_node <= MAX_NODE_RANKS;
}

void group_set_one_node(struct group *group) {
    group->nodes = 1;
    group->node = 0;
    group->ranks_per_node = group->size;
    group->local_index = group->rank;
    group->leaders[0] = 0;
    for (int rank = 0; rank < group->size; rank++) group->local[rank] = rank;
}

bool group_is_on_one_node(const struct group *group, char reason[], size_t reason_size) {
    if (group->nodes <= 1) return true;
    snprintf(reason, reason_size, "ranks on several nodes");
    return false;
}

// If ranks are threads, the first one is watched for all.
static bool is_watched(const struct group *group) {
    return group->rank == 0 || !group->shares_process;
}

void group_begin(struct group *group) {
    group->kernels = kernels_best();
    group->spin_limit = SPINS_THAT_YIELD; // until the number of cores is known
    group->control->of[group->rank].pid = (int32_t)getpid();
    group->cores = count_cores(group);
    group->oversubscribed = group->ranks_per_node > group->cores;
    bool yields = group->oversubscribed || group->shares_process || group->nodes > 1;
    group->spin_limit = yields ? SPINS_THAT_YIELD : SPINS;
    if (is_watched(group)) culprit_among(group);
}

void group_open_thread(struct group *group, struct control *control, int rank, int size, double timeout_s) {
    *group = (struct group){
        .rank = rank, .size = size, .timeout_s = timeout_s, .control = control, .shares_process = true};
    group_set_one_node(group);
    group_begin(group);
}

void group_open_process(struct group *group, struct control *control, int rank, int size, double timeout_s,
                        uint64_t run_id) {
    *group = (struct group){
        .rank = rank, .size = size, .timeout_s = timeout_s, .control = control, .run_id = run_id};
    group_set_one_node(group);
    group_begin(group);
}

void group_close(struct group *group) {
    if (is_watched(group)) culprit_among(NULL);
    if (group->link != NULL) group->link->close(group);
    if (!group->shares_process) group_unmap(group->control, control_bytes(group->size));
}
