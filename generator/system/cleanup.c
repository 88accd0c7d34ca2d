// Temporary files and folders; see cleanup.h.
#include "cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/problem.h"
#include "child.h"

enum { MOST_PATHS = 2048, MOST_LEVELS = 64, MOST_PASSES = 3 };

static struct {
    _Atomic(char *) path; // NULL: free
    pid_t owner;          // after a fork the child has the list of its parent
    int lock;             // an open file, or -1
} entries[MOST_PATHS];

void cleanup_add_locked(const char *path, int lock) {
    char *copy = strdup(path);
    for (size_t i = 0; i < MOST_PATHS && copy != NULL; i++) {
        if (atomic_load(&entries[i].path) != NULL) continue;
        entries[i].owner = getpid();
        entries[i].lock = lock;
        atomic_store(&entries[i].path, copy);
        return;
    }
    free(copy); // only a signal would need it
}

void cleanup_add(const char *path) {
    cleanup_add_locked(path, -1);
}

void cleanup_forget(const char *path) {
    sigset_t former;
    signals_block(&former); // the handler must not read a freed path
    for (size_t i = 0; i < MOST_PATHS; i++) {
        char *found = atomic_load(&entries[i].path);
        if (found == NULL || strcmp(found, path) != 0) continue;
        atomic_store(&entries[i].path, NULL);
        free(found);
        if (entries[i].lock >= 0) close(entries[i].lock);
        break;
    }
    sigprocmask(SIG_SETMASK, &former, NULL);
}

// ---- removal: system calls only -----------------------------------------------------------------

static void remove_below(int parent, const char *name, int levels);

// Removes the entries of a folder. getdents64 in place of readdir, which allocates.
static void empty(int folder, int levels) {
    _Alignas(struct dirent64) char buffer[2048];
    ssize_t got;
    while ((got = getdents64(folder, buffer, sizeof buffer)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            remove_below(folder, entry->d_name, levels);
        }
    }
}

static void remove_below(int parent, const char *name, int levels) {
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM) || levels == 0) return;
    // Some file systems skip entries if others are removed meanwhile; descriptors may be short for a moment.
    for (int i = 0; i < MOST_PASSES; i++) {
        int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0) continue;
        empty(folder, levels - 1);
        close(folder);
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0) break;
    }
}

void cleanup_remove(const char *path) {
    remove_below(AT_FDCWD, path, MOST_LEVELS);
}

void cleanup_run(void) {
    for (size_t i = 0; i < MOST_PATHS; i++) {
        const char *path = atomic_load(&entries[i].path);
        if (path != NULL && entries[i].owner == getpid()) cleanup_remove(path);
    }
}

// ---- temporary folders that were left -----------------------------------------------------------

// No other program, and no earlier version of this one, makes such names: their folders are not locked.
static const char suffix[] = ".locked.XXXXXX";
// Of folders that the system cannot lock, which no other run removes. As long as `suffix`.
static const char suffix_without_lock[] = ".nolock.XXXXXX";
enum { RANDOM_LENGTH = 6 };

static int open_folder(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Whether the folder at `path` is the open one.
static bool is_at(int folder, const char *path) {
    struct stat opened, found;
    return fstat(folder, &opened) == 0 && lstat(path, &found) == 0 && opened.st_dev == found.st_dev &&
           opened.st_ino == found.st_ino;
}

// Removes a folder of this user that is not locked. File systems without locks keep it.
static void remove_unlocked(const char *path) {
    int folder = open_folder(path);
    struct stat status;
    bool is_left = folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
                   flock(folder, LOCK_EX | LOCK_NB) == 0 && is_at(folder, path);
    if (is_left) cleanup_remove(path);
    if (folder >= 0) close(folder);
}

// Removes what killed runs have left of this name. Failures are ignored: the next run tries it again.
static void remove_left(const char *parent, const char *name) {
    DIR *folder = opendir(parent);
    size_t length = strlen(name);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        const char *rest = entry->d_name + length;
        char path[PATH_MAX];
        bool is_named = strncmp(entry->d_name, name, length) == 0 && strlen(rest) == strlen(suffix) &&
                        strncmp(rest, suffix, strlen(suffix) - RANDOM_LENGTH) == 0;
        int size = is_named ? snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) : -1;
        if (size >= 0 && (size_t)size < sizeof path) remove_unlocked(path);
    }
    if (folder != NULL) closedir(folder);
}

// ---- a new temporary folder ---------------------------------------------------------------------

// Makes and opens a folder, and locks it if `locks`; `path` ends with XXXXXX. Returns the descriptor; -1 and
// errno if that fails. errno is EAGAIN if another run has removed the folder before it was locked, and ENOLCK
// if the system cannot lock it.
static int make_folder(char *path, bool locks) {
    if (mkdtemp(path) == NULL) return -1;
    int folder = open_folder(path), reason = errno == ENOENT ? EAGAIN : errno;
    if (folder >= 0 && !locks) return folder;
    if (folder >= 0) {
        bool is_locked = flock(folder, LOCK_EX | LOCK_NB) == 0;
        if (is_locked && is_at(folder, path)) return folder;
        reason = is_locked || errno == EWOULDBLOCK ? EAGAIN : ENOLCK;
        close(folder);
    }
    if (reason != EAGAIN) (void)rmdir(path);
    errno = reason;
    return -1;
}

bool temporary_folder_make(const char *name, char path[PATH_MAX], struct problem *problem) {
    enum { MOST_TRIES = 100 };
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0') parent = "/tmp";
    int length = snprintf(path, PATH_MAX, "%s/%s%s", parent, name, suffix);
    if (length < 0 || length >= PATH_MAX) {
        return problem_set(
            problem, "%s: the path of a temporary file is too long; set TMPDIR to a shorter one", parent);
    }
    remove_left(parent, name);
    int lock = -1, reason = EAGAIN;
    bool locks = true;
    for (int i = 0; i < MOST_TRIES && lock < 0 && reason == EAGAIN; i++) {
        strcpy(path + length - strlen(suffix), locks ? suffix : suffix_without_lock);
        sigset_t former;
        signals_block(&former); // until the name is in the list
        lock = make_folder(path, locks);
        reason = errno;
        if (lock < 0 && reason == ENOLCK) {
            locks = false;
            reason = EAGAIN;
        }
        if (lock >= 0) cleanup_add_locked(path, lock);
        sigprocmask(SIG_SETMASK, &former, NULL);
    }
    return lock >= 0 || problem_set(problem, "%s: cannot be written: %s; set TMPDIR to another folder",
                                    parent, strerror(reason));
}

// ---- signals ------------------------------------------------------------------------------------

static void end_process(int number) {
    cleanup_run();
    signal(number, SIG_DFL);
    raise(number); // it is blocked until this function returns
}

void cleanup_on_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end_process}, former;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &former);
        if (former.sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
    }
}

// ---- without memory -----------------------------------------------------------------------------

static const int faults[] = {SIGSEGV, SIGABRT}; // the second one by assertions of a library
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction former[FAULTS];

static int guards;
static const char *guarded; // the library, or NULL

// Ends the program with a message in three parts. Async-signal-safe.
__attribute__((noreturn)) static void end_with(const char *first, const char *second, const char *third) {
    const char *const parts[] = {first, second, third};
    cleanup_run();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0) break;
    }
    _exit(EXIT_FAILURE);
}

void out_of_memory_end(void) {
    end_with("gentables: ", "out of memory", "\n");
}

// A fault in a library, or after a failed allocation, which sets errno. Otherwise the faulting instruction,
// or abort(), raises the signal again, which ends the program.
static void take_fault(int signal_number) {
    if (errno == ENOMEM) out_of_memory_end();
    if (guarded != NULL) end_with("gentables: ", guarded, ": a fault; this program may be out of memory\n");
    for (int i = 0; i < FAULTS; i++) {
        if (faults[i] == signal_number) sigaction(signal_number, &former[i], NULL);
    }
}

void out_of_memory_guard(const char *library) {
    errno = 0;
    guarded = library;
    if (guards++ > 0) return;
    struct sigaction action = {.sa_handler = take_fault};
    for (int i = 0; i < FAULTS; i++) sigaction(faults[i], &action, &former[i]);
}

void out_of_memory_unguard(void) {
    guarded = NULL;
    if (--guards > 0) return;
    for (int i = 0; i < FAULTS; i++) sigaction(faults[i], &former[i], NULL);
}
