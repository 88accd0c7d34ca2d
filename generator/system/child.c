// Signals and ends of child processes; see child.h.
#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const int caught_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught_signals / sizeof caught_signals[0] };
static struct sigaction former_actions[CAUGHT];
static volatile sig_atomic_t caught_signal;
static int catchers;

static void catch_signal(int number) {
    caught_signal = number;
}

void signals_catch(void) {
    if (catchers++ > 0) return;
    struct sigaction action = {.sa_handler = catch_signal};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++) {
        sigaction(caught_signals[i], NULL, &former_actions[i]);
        if (former_actions[i].sa_handler != SIG_IGN) sigaction(caught_signals[i], &action, NULL);
    }
}

void signals_release(void) {
    if (--catchers > 0) return;
    for (int i = 0; i < CAUGHT; i++) sigaction(caught_signals[i], &former_actions[i], NULL);
}

int signals_caught(void) {
    return caught_signal;
}

void signals_reset(void) {
    caught_signal = 0;
    catchers = 0;
}

void signals_fill(sigset_t *set) {
    sigemptyset(set);
    for (int i = 0; i < CAUGHT; i++) sigaddset(set, caught_signals[i]);
}

void signals_block(sigset_t *former) {
    sigset_t set;
    signals_fill(&set);
    sigprocmask(SIG_BLOCK, &set, former);
}

bool child_has_ended(pid_t pid) {
    siginfo_t info = {0};
    int got = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return (got == 0 && info.si_pid == pid) || (got < 0 && errno != EINTR);
}

int child_reap(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

void child_exit_reason(int status, char reason[EXIT_REASON_SIZE]) {
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        const char *text = sigdescr_np(WTERMSIG(status));
        snprintf(reason, EXIT_REASON_SIZE, "killed by SIG%s (%s)", name ? name : "?",
                 text ? text : "unknown signal");
    } else {
        snprintf(reason, EXIT_REASON_SIZE, "exit code %d", WEXITSTATUS(status));
    }
}
