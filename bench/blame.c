// Deadlines and crashes, by name; see blame.h. The thread only looks at a clock, 20 times a second.
#include "blame.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/group.h"

static const char *_Atomic work;
static _Atomic uint64_t since_ns;
static int own_rank;
static uint64_t timeout_ns;
static struct { const char *volatile begin, *volatile end; } guards[BLAME_GUARDS];
static _Atomic bool ended;
static pthread_t watcher;

static void put(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    for (; *more != '\0' && used + 1 < size; more++) text[used++] = *more;
    text[used] = '\0';
}

// Nothing but write: this may be a signal handler. The line is whole, so that it stays one.
static void tell(const char *what, const char *happened) {
    char text[256] = "", digits[4] = {(char)('0' + own_rank / 10), (char)('0' + own_rank % 10), '\0'};
    put(text, sizeof text, "gentables-bench: rank ");
    put(text, sizeof text, own_rank < 10 ? digits + 1 : digits);
    put(text, sizeof text, ": ");
    put(text, sizeof text, what);
    put(text, sizeof text, ": ");
    put(text, sizeof text, happened);
    put(text, sizeof text, "\n");
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(1);
}

static bool is_guarded(const char *address) {
    for (int i = 0; i < BLAME_GUARDS; i++) {
        if (address >= guards[i].begin && address < guards[i].end) return true;
    }
    return false;
}

static void end_crashed_rank(int number, siginfo_t *info, void *unused) {
    (void)unused;
    const char *what = atomic_load(&work);
    const char *how = number == SIGSEGV && is_guarded(info->si_addr) ? "touched memory beyond a buffer"
                      : number == SIGSEGV                            ? "crashed (segmentation fault)"
                      : number == SIGBUS                             ? "crashed (bus error)"
                      : number == SIGFPE                             ? "crashed (arithmetic error)"
                      : number == SIGILL                             ? "crashed (illegal instruction)"
                                                                     : "crashed (abort)";
    tell(what == NULL ? "the bench" : what, how);
    _exit(1);
}

static void note_exit(void) {
    const char *what = atomic_load(&work);
    if (what == NULL || atomic_load(&ended)) return;
    tell(what, "ended the process");
    _exit(1);
}

static void *watch(void *unused) {
    (void)unused;
    while (!atomic_load(&ended)) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        const char *what = atomic_load(&work);
        uint64_t since = atomic_load(&since_ns), now = clock_ns();
        if (what == NULL || now < since || now - since < timeout_ns) continue;
        if (atomic_load(&work) != what || atomic_load(&since_ns) != since) continue;
        tell(what, "did not come back in time");
        _exit(1);
    }
    return NULL;
}

void blame_begin(int rank, double timeout_s) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all, old;
    own_rank = rank;
    timeout_ns = (uint64_t)(timeout_s * 1e9);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        sigaction(crashes[i], &(struct sigaction){.sa_sigaction = end_crashed_rank, .sa_flags = SA_SIGINFO},
                  NULL);
    }
    atexit(note_exit);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&watcher, NULL, watch, NULL) != 0) atomic_store(&ended, true);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void blame_work(const char *what) {
    if (what != NULL) atomic_store_explicit(&since_ns, clock_ns(), memory_order_relaxed);
    atomic_store_explicit(&work, what, memory_order_release);
}

void blame_guard(int place, const void *begin, const void *end) {
    guards[place].begin = begin;
    guards[place].end = end;
}

void blame_end(void) {
    atomic_store(&work, NULL);
    if (atomic_exchange(&ended, true)) return;
    pthread_join(watcher, NULL);
}
