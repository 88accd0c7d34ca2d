// Processes that watch over processes; see isolation_process.h.
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
    GRACE_US = 500000, // for who is asked to end
    LAST_S = 5,        // for those who are left to be gone
};

static const int asking[] = {SIGTERM, SIGINT, SIGHUP};
enum { ASKING = sizeof asking / sizeof *asking };

static pid_t own_warden;        // of the child; 0: none
static volatile pid_t own_ward; // of the warden; 0: it has ended
static volatile sig_atomic_t is_asked;

char process_state(pid_t pid, pid_t *parent) {
    char path[64], line[512], state = PROCESS_GONE;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return PROCESS_GONE;
    size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    const char *after_name = strrchr(line, ')'); // the name may hold anything
    if (after_name == NULL || sscanf(after_name + 1, " %c %d", &state, parent) != 2) return PROCESS_GONE;
    return state == 'Z' ? PROCESS_GONE : state;
}

// Calls `each` for every process that has this parent, which returns whether it counts; returns how many do.
static long children_of(pid_t parent, bool (*each)(pid_t)) {
    long count = 0;
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), its_parent = -1;
        process_state(pid, &its_parent); // that has ended, too, if nobody has waited for it
        if (its_parent == parent) count += each(pid);
    }
    if (folder != NULL) closedir(folder);
    return count;
}

static bool is_another(pid_t pid) {
    return pid != getpid();
}

bool is_isolated(void) {
    return own_warden != 0;
}

long isolation_children(void) {
    return children_of(getpid(), is_another) + (own_warden != 0 ? children_of(own_warden, is_another) : 0);
}

// ---- the warden -----------------------------------------------------------------------------------------

static void hand_on(int number) {
    is_asked = 1;
    if (own_ward == 0) _exit(128 + number);
    kill(own_ward, number);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = GRACE_US}, NULL);
}

static void lose_patience(int unused) {
    (void)unused;
    if (own_ward == 0) _exit(1); // who is left does not end, such as one that waits within a driver
    kill(own_ward, SIGKILL);
}

// How the child ended. Those who have lost their parents come here, and are waited for meanwhile.
static int status_of_ward(void) {
    int status = 0;
    for (;;) {
        pid_t pid = waitpid(-1, &status, 0);
        if (pid == own_ward) return status;
        if (pid < 0 && errno != EINTR) return 1 << 8; // cannot be
    }
}

static bool end_one(pid_t pid) {
    return kill(pid, SIGKILL) == 0;
}

// Who is killed may leave others.
static void end_those_left(void) {
    while (children_of(getpid(), end_one) > 0) {
        if (waitpid(-1, NULL, 0) < 0 && errno != EINTR) return;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}

_Noreturn static void end_alike(int status, bool is_failure) {
    if (WIFSIGNALED(status)) {
        prctl(PR_SET_DUMPABLE, 0); // there is a core already, where cores are wanted
        signal(WTERMSIG(status), SIG_DFL);
        kill(getpid(), WTERMSIG(status));
        _exit(128 + WTERMSIG(status));
    }
    _exit(is_failure && WEXITSTATUS(status) == 0 ? 1 : WEXITSTATUS(status));
}

_Noreturn static void watch_over(bool (*ended)(int status)) {
    signal(SIGPIPE, SIG_IGN); // what is left is ended, be there somebody who reads or not
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    closefrom(STDERR_FILENO + 1); // who waits for their end waits for the child
    int status = status_of_ward();
    own_ward = 0;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = LAST_S}, NULL);
    bool is_failure = !is_asked && ended(status);
    end_those_left();
    end_alike(status, is_failure);
}

int isolation_begin(bool (*ended)(int status)) {
    sigset_t signals, former;
    pid_t warden = getpid();
    struct sigaction actions[ASKING];
    if (own_warden != 0) return 0;
    sigemptyset(&signals);
    for (int i = 0; i < ASKING; i++) sigaddset(&signals, asking[i]);
    sigprocmask(SIG_BLOCK, &signals, &former);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return -1;
    signal(SIGCHLD, SIG_DFL); // ignored, as some who start us have it, nobody could be waited for
    pid_t ward = fork();
    if (ward > 0) {
        own_ward = ward;
        for (int i = 0; i < ASKING; i++) {
            sigaction(asking[i], NULL, &actions[i]);
            if (actions[i].sa_handler != SIG_IGN) signal(asking[i], hand_on); // nohup's stay ignored
        }
        signal(SIGALRM, lose_patience);
    }
    sigprocmask(SIG_SETMASK, &former, NULL);
    if (ward > 0) watch_over(ended);
    if (ward < 0) return -1;
    // The warden may have ended before its death signal was asked for.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != warden) _exit(1);
    own_warden = warden;
    return 0;
}
