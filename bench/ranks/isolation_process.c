// Isolation processes; see isolation_process.h.
#include "isolation_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_US = 500000, // after a signal, until the child is killed
    LAST_S = 5,        // until the processes that the child left must have ended
};

static const int end_signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { END_SIGNALS = sizeof end_signals / sizeof *end_signals };

static pid_t own_parent;         // in the child: the isolation process; 0: none
static volatile pid_t own_child; // in the isolation process; 0: it has ended
static volatile sig_atomic_t is_signalled;

char process_state(pid_t pid, pid_t *parent) {
    char path[64], line[512], state = PROCESS_GONE;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return PROCESS_GONE;
    size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    const char *after_name = strrchr(line, ')'); // the name may contain any character
    if (after_name == NULL || sscanf(after_name + 1, " %c %d", &state, parent) != 2) return PROCESS_GONE;
    return state == 'Z' ? PROCESS_GONE : state;
}

// Calls `each` for every child of `parent`, and returns for how many it returned true.
static long children_of(pid_t parent, bool (*each)(pid_t)) {
    long count = 0;
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), its_parent = -1;
        process_state(pid, &its_parent); // also of zombies
        if (its_parent == parent) count += each(pid);
    }
    if (folder != NULL) closedir(folder);
    return count;
}

static bool is_another(pid_t pid) {
    return pid != getpid();
}

bool is_isolated(void) {
    return own_parent != 0;
}

long isolation_children(void) {
    return children_of(getpid(), is_another) + (own_parent != 0 ? children_of(own_parent, is_another) : 0);
}

// ---- the isolation process --------------------------------------------------------------------------------

static void pass_on(int number) {
    is_signalled = 1;
    if (own_child == 0) _exit(128 + number);
    kill(own_child, number);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = GRACE_US}, NULL);
}

static void kill_child(int unused) {
    (void)unused;
    if (own_child == 0) _exit(1); // a process does not end, for example because it waits in a driver
    kill(own_child, SIGKILL);
}

// How the child ended. Reaps orphans of the child meanwhile.
static int status_of_child(void) {
    int status = 0;
    for (;;) {
        pid_t pid = waitpid(-1, &status, 0);
        if (pid == own_child) return status;
        if (pid < 0 && errno != EINTR) return 1 << 8; // impossible
    }
}

static bool end_one(pid_t pid) {
    return kill(pid, SIGKILL) == 0;
}

// Kills in rounds, since a killed process may leave children.
static void end_those_left(void) {
    while (children_of(getpid(), end_one) > 0) {
        if (waitpid(-1, NULL, 0) < 0 && errno != EINTR) return;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}

_Noreturn static void end_as_child(int status, bool is_failure) {
    if (WIFSIGNALED(status)) {
        prctl(PR_SET_DUMPABLE, 0); // the child has already written a core, if cores are enabled
        signal(WTERMSIG(status), SIG_DFL);
        kill(getpid(), WTERMSIG(status));
        _exit(128 + WTERMSIG(status));
    }
    _exit(is_failure && WEXITSTATUS(status) == 0 ? 1 : WEXITSTATUS(status));
}

_Noreturn static void watch_over(bool (*ended)(int status)) {
    signal(SIGPIPE, SIG_IGN); // the processes are killed even if stderr is closed
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    closefrom(STDERR_FILENO + 1); // the child has them; readers of its pipes wait for its end
    int status = status_of_child();
    own_child = 0;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = LAST_S}, NULL);
    bool is_failure = !is_signalled && ended(status);
    end_those_left();
    end_as_child(status, is_failure);
}

int isolation_begin(bool (*ended)(int status)) {
    sigset_t signals, former;
    pid_t parent = getpid();
    struct sigaction actions[END_SIGNALS];
    if (own_parent != 0) return 0;
    sigemptyset(&signals);
    for (int i = 0; i < END_SIGNALS; i++) sigaddset(&signals, end_signals[i]);
    sigprocmask(SIG_BLOCK, &signals, &former);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return -1;
    signal(SIGCHLD, SIG_DFL); // some launchers ignore it, and then waitpid returns no status
    pid_t child = fork();
    if (child > 0) {
        own_child = child;
        for (int i = 0; i < END_SIGNALS; i++) {
            sigaction(end_signals[i], NULL, &actions[i]);
            if (actions[i].sa_handler != SIG_IGN) signal(end_signals[i], pass_on); // as under nohup
        }
        signal(SIGALRM, kill_child);
    }
    sigprocmask(SIG_SETMASK, &former, NULL);
    if (child > 0) watch_over(ended);
    if (child < 0) return -1;
    // The parent may have ended before its death signal was set.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    own_parent = parent;
    return 0;
}
