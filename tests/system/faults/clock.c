// A clock that runs fast after a fault: preloaded, it makes CLOCK_MONOTONIC of all processes of a case run
// HURRY times as fast from the fault on, until it is ahead by FAULT_CLOCK_SKIP seconds. Then it runs at its
// usual speed, also in the last seconds of a deadline. So a deadline may be far above the time of a healthy
// process on a busy machine, and no test waits for it.
//
//   FAULT_CLOCK        a file that the processes of a case share; without it the clock is unchanged
//   FAULT_CLOCK_SKIP   seconds, by which a fault brings deadlines nearer
//
// A faulty program calls fault_clock_hurry; plug-ins and other programs find it with dlsym. mpirun's clock is
// not changed.
#include "clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HURRY = 20, FAULTS = 63, SLICE_NS = 20000000 };

#define SECOND_NS 1000000000

// Faults so far, and the time at which each began; 0: its time is being written.
struct page {
    _Atomic uint64_t count, since_ns[FAULTS];
};

static struct page *page; // NULL: the clock is as always
static uint64_t skip_ns;
static int (*next_gettime)(clockid_t, struct timespec *);

static uint64_t ns_of(const struct timespec *time) {
    return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec;
}

static struct timespec time_of(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
}

static int real_gettime(clockid_t clock, struct timespec *time) {
    if (next_gettime == NULL) *(void **)&next_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    return next_gettime(clock, time);
}

static uint64_t real_ns(void) {
    struct timespec time = {0};
    real_gettime(CLOCK_MONOTONIC, &time);
    return ns_of(&time);
}

// By how much the faults have set the clock ahead.
static uint64_t ahead_ns(uint64_t since_ns, uint64_t now_ns) {
    if (since_ns == 0 || now_ns <= since_ns) return 0;
    uint64_t ahead = (HURRY - 1) * (now_ns - since_ns);
    return ahead < skip_ns ? ahead : skip_ns;
}

static uint64_t hurried_ns(uint64_t now_ns) {
    uint64_t hurried = now_ns, count = atomic_load(&page->count);
    for (uint64_t i = 0; i < count && i < FAULTS; i++) {
        hurried += ahead_ns(atomic_load(&page->since_ns[i]), now_ns);
    }
    return hurried;
}

// Of several faults at the same moment one counts.
void fault_clock_hurry(void) {
    if (page == NULL) return;
    uint64_t now_ns = real_ns(), count = atomic_load(&page->count);
    if (count == FAULTS) return;
    if (count > 0) {
        uint64_t last_ns = atomic_load(&page->since_ns[count - 1]);
        if (last_ns == 0 || ahead_ns(last_ns, now_ns) < skip_ns) return;
    }
    if (atomic_compare_exchange_strong(&page->count, &count, count + 1)) {
        atomic_store(&page->since_ns[count], now_ns);
    }
}

// ---- the functions by which programs read the time --------------------------------------------

int clock_gettime(clockid_t clock, struct timespec *time) {
    int status = real_gettime(clock, time);
    if (page != NULL && status == 0 && clock == CLOCK_MONOTONIC) *time = time_of(hurried_ns(ns_of(time)));
    return status;
}

// How long to sleep until the clock is read again, with `left_ns` left on that clock.
static struct timespec slice_of(uint64_t left_ns) {
    return time_of(left_ns < SLICE_NS ? left_ns : SLICE_NS);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *remain) {
    int (*next)(clockid_t, int, const struct timespec *, struct timespec *);
    *(void **)&next = dlsym(RTLD_NEXT, "clock_nanosleep");
    if (page == NULL || clock != CLOCK_MONOTONIC || flags != TIMER_ABSTIME) {
        return next(clock, flags, request, remain);
    }
    for (uint64_t now_ns; (now_ns = hurried_ns(real_ns())) < ns_of(request);) {
        struct timespec slice = slice_of(ns_of(request) - now_ns);
        int status = next(CLOCK_MONOTONIC, 0, &slice, NULL);
        if (status != 0) return status;
    }
    return 0;
}

int ppoll(struct pollfd *polls, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    int (*next)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    *(void **)&next = dlsym(RTLD_NEXT, "ppoll");
    if (page == NULL || timeout == NULL) return next(polls, count, timeout, mask);
    uint64_t until_ns = hurried_ns(real_ns()) + ns_of(timeout);
    for (;;) {
        uint64_t now_ns = hurried_ns(real_ns());
        struct timespec slice = slice_of(now_ns < until_ns ? until_ns - now_ns : 0);
        int ready = next(polls, count, &slice, mask);
        if (ready != 0 || now_ns >= until_ns) return ready;
    }
}

// ---- start ------------------------------------------------------------------------------------

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("FAULT_CLOCK"), *skip = getenv("FAULT_CLOCK_SKIP");
    if (path == NULL || skip == NULL || strstr(program_invocation_short_name, "run") != NULL) return;
    skip_ns = (uint64_t)(strtod(skip, NULL) * SECOND_NS);
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) return;
    void *shared = MAP_FAILED;
    if (ftruncate(file, sizeof *page) == 0) {
        shared = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (shared != MAP_FAILED) page = shared;
}
