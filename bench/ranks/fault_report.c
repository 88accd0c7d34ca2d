// Deadlines and crashes, by name; see fault_report.h. The thread only looks at a clock, 20 times a second.
#include "fault_report.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "group.h"
#include "isolation_process.h"
#include "watch.h"

enum {
    GUARDS = 256,
    GRACE_PARTS = 16, // of the deadline: for what was told to end
    LONGEST_GRACE_NS = 500000000,
    NAME_SIZE = 80,         // of work
    STACK_BYTES = 64 << 10, // of a handler, where a candidate has used up its own
};

// One rank of this process.
struct desk {
    const char *_Atomic work;
    _Atomic uint64_t since_ns;
    _Atomic bool is_taken;
    char name[NAME_SIZE]; // of the work, for the warden, who sees nothing else of this process
};

// What the warden sees, where there is one.
struct office {
    struct desk desks[MAX_RANKS];
    _Atomic bool has_spoken; // why the process ends has been told
};

static struct office own_office, *office = &own_office;
static unsigned char stacks[MAX_RANKS][STACK_BYTES];
static pid_t own_process;                    // not that of children that plug-ins make
static struct deadline deadlines[MAX_RANKS]; // the watcher's
static void (*_Atomic on_late)(int rank);
static _Thread_local int own_rank = -1; // -1: a thread that no rank is, such as one of a plug-in
static uint64_t timeout_ns;
static struct { const char *_Atomic begin, *_Atomic end; } guards[GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of guards, and of beginning and ending
static int ranks_here;
static _Atomic bool ended = true;
static pthread_t watcher;

static void put(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    for (; *more != '\0' && used + 1 < size; more++) text[used++] = *more;
    text[used] = '\0';
}

// Nothing but write: this may be a signal handler. The line is whole, so that it stays one.
static void tell(int rank, const char *what, const char *happened) {
    char text[256] = "", digits[4] = {(char)('0' + rank / 10), (char)('0' + rank % 10), '\0'};
    put(text, sizeof text, "gentables-bench: rank ");
    put(text, sizeof text, rank < 10 ? digits + 1 : digits);
    put(text, sizeof text, ": ");
    put(text, sizeof text, what);
    put(text, sizeof text, ": ");
    put(text, sizeof text, happened);
    put(text, sizeof text, "\n");
    atomic_store(&office->has_spoken, true);
    if (write(STDERR_FILENO, text, strlen(text)) < 0 && getpid() == own_process) _exit(1);
}

// The rank that this thread is; of another thread, one that is at work; or else any.
static int rank_here(void) {
    int taken = 0;
    if (own_rank >= 0) return own_rank;
    for (int rank = 0; rank < MAX_RANKS; rank++) {
        if (!atomic_load(&office->desks[rank].is_taken)) continue;
        if (atomic_load(&office->desks[rank].work) != NULL) return rank;
        taken = rank;
    }
    return taken;
}

static bool is_guarded(const char *address) {
    for (int i = 0; i < GUARDS; i++) {
        if (address >= atomic_load(&guards[i].begin) && address < atomic_load(&guards[i].end)) return true;
    }
    return false;
}

static void end_crashed_rank(int number, siginfo_t *info, void *unused) {
    (void)unused;
    if (getpid() != own_process) _exit(1);
    int rank = rank_here();
    const char *what = atomic_load(&office->desks[rank].work);
    const char *how = number == SIGSEGV && is_guarded(info->si_addr) ? "touched memory beyond a buffer"
                      : number == SIGSEGV                            ? "crashed (segmentation fault)"
                      : number == SIGBUS                             ? "crashed (bus error)"
                      : number == SIGFPE                             ? "crashed (arithmetic error)"
                      : number == SIGILL                             ? "crashed (illegal instruction)"
                                                                     : "crashed (abort)";
    tell(rank, what == NULL ? "the bench" : what, how);
    _exit(1);
}

static void note_exit(void) {
    int rank = rank_here();
    const char *what = atomic_load(&office->desks[rank].work);
    if (what == NULL || atomic_load(&ended) || atomic_load(&office->has_spoken)) return;
    if (getpid() != own_process) return;
    tell(rank, what, "ended the process");
    _exit(1);
}

// In the warden, once the process has ended: of ranks that are threads of it, who was last to begin.
static bool note_silent_end(int status) {
    int rank = -1;
    char how[80] = "ended the process, or let another program take its place";
    for (int i = 0; i < MAX_RANKS; i++) {
        const struct desk *desk = &office->desks[i];
        if (!atomic_load(&desk->is_taken) || atomic_load(&desk->work) == NULL) continue;
        if (rank < 0 || atomic_load(&desk->since_ns) > atomic_load(&office->desks[rank].since_ns)) rank = i;
    }
    if (rank < 0 || atomic_load(&office->has_spoken)) return false;
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (name != NULL) snprintf(how, sizeof how, "was killed by SIG%s", name);
    if (name == NULL && WIFSIGNALED(status)) // one of real time has no name
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
    tell(rank, office->desks[rank].name, how);
    return true;
}

// Of a phase, in which all wait for all, it is told who held them up; of a candidate it is he, unless a rank
// is stopped, which is no candidate's doing, or gone: then who was stopped may run on for a while, and finds
// himself late.
static void tell_late(int rank, const char *what) {
    static const char candidate[] = "strategy ";
    atomic_store(&office->has_spoken, true); // now, in whatever words
    if (!watch_report(rank, what, strncmp(what, candidate, sizeof candidate - 1) == 0))
        tell(rank, what, "did not come back in time");
}

// Ends the process where this rank's work has had all of its time; a grace before, it is told to end.
static void look_at(int rank) {
    struct desk *desk = &office->desks[rank];
    const char *what = atomic_load(&desk->work);
    uint64_t since = atomic_load(&desk->since_ns), grace_ns = timeout_ns / GRACE_PARTS;
    if (grace_ns > LONGEST_GRACE_NS) grace_ns = LONGEST_GRACE_NS;
    if (what == NULL || atomic_load(&desk->work) != what || atomic_load(&desk->since_ns) != since) return;
    void (*cancel)(int) = atomic_load(&on_late);
    enum verdict verdict = deadline_look(&deadlines[rank], since, clock_ns(), timeout_ns, grace_ns);
    if (verdict == VERDICT_TELL && cancel != NULL) cancel(rank);
    if (verdict != VERDICT_END) return;
    tell_late(rank, what);
    _exit(1);
}

static void *watch(void *unused) {
    (void)unused;
    while (!atomic_load(&ended)) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        for (int rank = 0; rank < MAX_RANKS; rank++) look_at(rank);
    }
    return NULL;
}

static void begin_process(double timeout_s) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all, old;
    timeout_ns = (uint64_t)(timeout_s * 1e9);
    own_process = getpid();
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        struct sigaction action = {.sa_sigaction = end_crashed_rank, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigaction(crashes[i], &action, NULL);
    }
    atexit(note_exit);
    atomic_store(&ended, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&watcher, NULL, watch, NULL) != 0) atomic_store(&ended, true);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int fault_isolate(void) {
    if (office != &own_office) return 0;
    void *shared = mmap(NULL, sizeof *office, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return -1;
    office = shared;
    return isolation_begin(note_silent_end);
}

// Handlers of this thread get a stack of their own, unless a sanitizer has given them one.
static void take_stack(int rank) {
    stack_t stack = {.ss_sp = stacks[rank], .ss_size = STACK_BYTES}, former;
    if (sigaltstack(NULL, &former) == 0 && (former.ss_flags & SS_DISABLE) != 0) sigaltstack(&stack, NULL);
}

static void leave_stack(int rank) {
    stack_t former;
    if (sigaltstack(NULL, &former) != 0 || former.ss_sp != stacks[rank]) return;
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

void fault_begin(int rank, double timeout_s) {
    pthread_mutex_lock(&lock);
    own_rank = rank;
    take_stack(rank);
    atomic_store(&office->desks[rank].is_taken, true);
    if (ranks_here++ == 0) begin_process(timeout_s);
    pthread_mutex_unlock(&lock);
}

void fault_work(const char *what) {
    if (own_rank < 0) return;
    struct desk *desk = &office->desks[own_rank];
    if (what != NULL) {
        atomic_store_explicit(&desk->since_ns, clock_ns(), memory_order_relaxed);
        size_t length = strnlen(what, NAME_SIZE - 1);
        memcpy(desk->name, what, length);
        desk->name[length] = '\0';
    }
    atomic_store_explicit(&desk->work, what, memory_order_release);
}

void fault_on_late(void (*cancel)(int rank)) {
    atomic_store(&on_late, cancel);
}

const char *fault_current_work(void) {
    return own_rank < 0 ? NULL : atomic_load(&office->desks[own_rank].work);
}

void fault_already_reported(void) {
    atomic_store(&office->has_spoken, true);
}

_Noreturn void fault_exit(const char *what, const char *happened) {
    tell(rank_here(), what, happened);
    _exit(1);
}

void fault_guard(const void *begin, const void *end) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < GUARDS; i++) {
        if (atomic_load(&guards[i].end) != NULL) continue;
        atomic_store(&guards[i].begin, begin);
        atomic_store(&guards[i].end, end);
        break;
    }
    pthread_mutex_unlock(&lock);
}

void fault_unguard(const void *begin) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < GUARDS; i++) {
        if (atomic_load(&guards[i].begin) != begin || atomic_load(&guards[i].end) == NULL) continue;
        atomic_store(&guards[i].end, NULL);
        break;
    }
    pthread_mutex_unlock(&lock);
}

void fault_end(void) {
    bool is_last;
    fault_work(NULL);
    pthread_mutex_lock(&lock);
    if (own_rank >= 0) {
        atomic_store(&office->desks[own_rank].is_taken, false);
        leave_stack(own_rank);
    }
    own_rank = -1;
    is_last = --ranks_here == 0;
    pthread_mutex_unlock(&lock);
    if (!is_last || atomic_exchange(&ended, true)) return;
    pthread_join(watcher, NULL);
}
