// Deadlines and crashes; see fault_report.h. A thread checks the deadlines 20 times a second.
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
    GRACE_PARTS = 16, // the grace time after a cancel is a sixteenth of the timeout
    LONGEST_GRACE_NS = 500000000,
    NAME_SIZE = 80,         // of work
    STACK_BYTES = 64 << 10, // of a signal handler, since a candidate may have used up its own stack
};

// One rank of this process, which has a place of its own: place_of.
struct rank_work {
    const char *_Atomic work;
    _Atomic uint64_t since_ns;
    _Atomic bool is_taken;
    _Atomic int rank;
    char name[NAME_SIZE]; // of the work, for the isolation process, which cannot follow pointers
};

// Shared with the isolation process, if there is one.
struct shared_work {
    struct rank_work ranks[MAX_NODE_RANKS];
    _Atomic bool is_reported; // the reason for the end has been reported
};

static struct shared_work own_work, *shared = &own_work;
static unsigned char stacks[MAX_NODE_RANKS][STACK_BYTES];
static pid_t own_process;                         // children that plug-ins fork have others
static struct deadline deadlines[MAX_NODE_RANKS]; // used by the watcher thread alone
static void (*_Atomic on_late)(int rank);
static _Thread_local int own_place = -1; // -1: not a rank's thread, but for example a plug-in's
static uint64_t timeout_ns;
static struct { const char *_Atomic begin, *_Atomic end; } guards[GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of ranks_here, and of changes of guards
static int ranks_here;
static _Atomic bool ended = true;
static pthread_t watcher;

static void put(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    for (; *more != '\0' && used + 1 < size; more++) text[used++] = *more;
    text[used] = '\0';
}

static void put_rank(char *text, size_t size, int rank) {
    char digits[4] = {0};
    int at = 3;
    do {
        digits[--at] = (char)('0' + rank % 10);
        rank /= 10;
    } while (rank > 0 && at > 0);
    put(text, size, digits + at);
}

// Uses only write(), since it may run in a signal handler; one call for the line, so that lines do not mix.
static void report(int place, const char *what, const char *happened) {
    char text[256] = "";
    put(text, sizeof text, "gentables-bench: rank ");
    put_rank(text, sizeof text, atomic_load(&shared->ranks[place].rank));
    put(text, sizeof text, ": ");
    put(text, sizeof text, what);
    put(text, sizeof text, ": ");
    put(text, sizeof text, happened);
    put(text, sizeof text, "\n");
    atomic_store(&shared->is_reported, true);
    if (write(STDERR_FILENO, text, strlen(text)) < 0 && getpid() == own_process) _exit(1);
}

// The ranks of a process are one, or consecutive ones of one node.
static int place_of(int rank) {
    return rank % MAX_NODE_RANKS;
}

// The place of this thread's rank. For threads that are no rank's: of a rank with current work, else of any.
static int place_here(void) {
    int taken = 0;
    if (own_place >= 0) return own_place;
    for (int place = 0; place < MAX_NODE_RANKS; place++) {
        if (!atomic_load(&shared->ranks[place].is_taken)) continue;
        if (atomic_load(&shared->ranks[place].work) != NULL) return place;
        taken = place;
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
    int place = place_here();
    const char *what = atomic_load(&shared->ranks[place].work);
    const char *how = number == SIGSEGV && is_guarded(info->si_addr) ? "touched memory beyond a buffer"
                      : number == SIGSEGV                            ? "crashed (segmentation fault)"
                      : number == SIGBUS                             ? "crashed (bus error)"
                      : number == SIGFPE                             ? "crashed (arithmetic error)"
                      : number == SIGILL                             ? "crashed (illegal instruction)"
                                                                     : "crashed (abort)";
    report(place, what == NULL ? "the bench" : what, how);
    _exit(1);
}

static void note_exit(void) {
    int place = place_here();
    const char *what = atomic_load(&shared->ranks[place].work);
    if (what == NULL || atomic_load(&ended) || atomic_load(&shared->is_reported)) return;
    if (getpid() != own_process) return;
    report(place, what, "ended the process");
    _exit(1);
}

// Runs in the isolation process after its child has ended. If ranks were threads, reports the work that began
// last.
static bool note_silent_end(int status) {
    int last = -1;
    char how[80] = "ended the process, or replaced it by another program";
    for (int i = 0; i < MAX_NODE_RANKS; i++) {
        const struct rank_work *own = &shared->ranks[i];
        if (!atomic_load(&own->is_taken) || atomic_load(&own->work) == NULL) continue;
        if (last < 0 || atomic_load(&own->since_ns) > atomic_load(&shared->ranks[last].since_ns)) last = i;
    }
    if (last < 0 || atomic_load(&shared->is_reported)) return false;
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    if (name != NULL) snprintf(how, sizeof how, "was killed by SIG%s", name);
    if (name == NULL && WIFSIGNALED(status)) // real-time signals have no names
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(status));
    report(last, shared->ranks[last].name, how);
    return true;
}

// In a phase in which all ranks wait for each other, reports the rank that the others wait for. A late
// candidate is reported itself, except if a rank is stopped, which is no fault of a candidate, or gone.
static void report_late(int place, const char *what) {
    static const char candidate[] = "strategy ";
    atomic_store(&shared->is_reported, true); // first, so that the isolation process does not report it again
    int rank = atomic_load(&shared->ranks[place].rank);
    if (!watch_report(rank, what, strncmp(what, candidate, sizeof candidate - 1) == 0))
        report(place, what, "did not return in time");
}

// Cancels this rank's work a grace time before its deadline, and ends the process at the deadline.
static void check_rank(int place) {
    struct rank_work *own = &shared->ranks[place];
    const char *what = atomic_load(&own->work);
    uint64_t since = atomic_load(&own->since_ns), grace_ns = timeout_ns / GRACE_PARTS;
    if (grace_ns > LONGEST_GRACE_NS) grace_ns = LONGEST_GRACE_NS;
    if (what == NULL || atomic_load(&own->work) != what || atomic_load(&own->since_ns) != since) return;
    void (*cancel)(int) = atomic_load(&on_late);
    enum verdict verdict = deadline_check(&deadlines[place], since, clock_ns(), timeout_ns, grace_ns);
    if (verdict == VERDICT_CANCEL && cancel != NULL) cancel(atomic_load(&own->rank));
    if (verdict != VERDICT_END) return;
    report_late(place, what);
    _exit(1);
}

static void *watch(void *unused) {
    (void)unused;
    while (!atomic_load(&ended)) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        for (int place = 0; place < MAX_NODE_RANKS; place++) check_rank(place);
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
    if (shared != &own_work) return 0;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return -1;
    shared = memory;
    return isolation_begin(note_silent_end);
}

// Gives signal handlers of this thread a stack of their own, unless a sanitizer has done so.
static void take_stack(int place) {
    stack_t stack = {.ss_sp = stacks[place], .ss_size = STACK_BYTES}, former;
    if (sigaltstack(NULL, &former) == 0 && (former.ss_flags & SS_DISABLE) != 0) sigaltstack(&stack, NULL);
}

static void leave_stack(int place) {
    stack_t former;
    if (sigaltstack(NULL, &former) != 0 || former.ss_sp != stacks[place]) return;
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

void fault_begin(int rank, double timeout_s) {
    pthread_mutex_lock(&lock);
    own_place = place_of(rank);
    take_stack(own_place);
    atomic_store(&shared->ranks[own_place].rank, rank);
    atomic_store(&shared->ranks[own_place].is_taken, true);
    if (ranks_here++ == 0) begin_process(timeout_s);
    pthread_mutex_unlock(&lock);
}

void fault_work(const char *what) {
    if (own_place < 0) return;
    struct rank_work *own = &shared->ranks[own_place];
    if (what != NULL) {
        atomic_store_explicit(&own->since_ns, clock_ns(), memory_order_relaxed);
        size_t length = strnlen(what, NAME_SIZE - 1);
        memcpy(own->name, what, length);
        own->name[length] = '\0';
    }
    atomic_store_explicit(&own->work, what, memory_order_release);
}

void fault_on_late(void (*cancel)(int rank)) {
    atomic_store(&on_late, cancel);
}

const char *fault_current_work(void) {
    return own_place < 0 ? NULL : atomic_load(&shared->ranks[own_place].work);
}

void fault_already_reported(void) {
    atomic_store(&shared->is_reported, true);
}

_Noreturn void fault_exit(const char *what, const char *happened) {
    report(place_here(), what, happened);
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
    if (own_place >= 0) {
        atomic_store(&shared->ranks[own_place].is_taken, false);
        leave_stack(own_place);
    }
    own_place = -1;
    is_last = --ranks_here == 0;
    pthread_mutex_unlock(&lock);
    if (!is_last || atomic_exchange(&ended, true)) return;
    pthread_join(watcher, NULL);
}
