// Ranks that are processes which this one starts, without MPI; see launch.h. This process opens no device: it
// only waits for the ranks, so that it can report one that dies, and end those that do not end by themselves.
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls/backend.h"
#include "ranks/watch.h"

enum {
    GRACE_S = 5, // after the time limit of a rank's wait, in which a rank notices that another one failed
    POLL_US = 1000,
};

// The running ranks. `control` is shared with them.
struct ranks {
    struct control *control;
    uint64_t run_id;
    double timeout_s;
    int size, left;
    pid_t pids[MAX_NODE_RANKS]; // 0: ended
};

// ---- in the process of a rank -------------------------------------------------------------------------

// A rank must not outlive the process that started it, which may have ended already.
static void end_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

_Noreturn static void run_rank(const struct ranks *ranks, int rank, rank_function *rank_main,
                               void *argument) {
    struct group group;
    watch_begin(ranks->timeout_s * backend->hang_timeouts);
    group_open_process(&group, ranks->control, rank, ranks->size, ranks->timeout_s, ranks->run_id);
    int status = rank_main(&group, argument);
    group_close(&group);
    fflush(NULL);
    _exit(status);
}

// ---- in the process that started them -----------------------------------------------------------------

static void kill_left(const struct ranks *ranks) {
    for (int rank = 0; rank < ranks->size; rank++) {
        if (ranks->pids[rank] != 0) kill(ranks->pids[rank], SIGKILL);
    }
}

// -1: no process can be started.
static int start(struct ranks *ranks, rank_function *rank_main, void *argument) {
    pid_t parent = getpid();
    fflush(NULL);
    for (int rank = 0; rank < ranks->size; rank++) {
        pid_t pid = fork();
        if (pid < 0) return -1;
        if (pid == 0) {
            end_with_parent(parent);
            run_rank(ranks, rank, rank_main, argument);
        }
        ranks->pids[rank] = pid;
        ranks->left++;
    }
    return 0;
}

// Reports a rank on behalf of it, unless a failure has been reported. The waits of the others end.
static void fail(const struct ranks *ranks, int rank, const char *what) {
    struct group group = {.rank = rank, .size = ranks->size, .control = ranks->control};
    char text[FAILURE_SIZE];
    snprintf(text, sizeof text, "rank %d %s", rank, what);
    group_fail(&group, text);
}

// Notes the end of a process. Returns its exit code; -1: it died; 0 also if it is no rank.
static int note_end(struct ranks *ranks, pid_t pid, int status) {
    char what[FAILURE_SIZE / 2];
    int rank = 0;
    while (rank < ranks->size && ranks->pids[rank] != pid) rank++;
    if (rank == ranks->size) return 0;
    ranks->pids[rank] = 0;
    ranks->left--;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    snprintf(what, sizeof what, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    fail(ranks, rank, what);
    return -1;
}

// Kills the ranks that have not ended by themselves after another one failed.
static void end_late_ranks(const struct ranks *ranks) {
    for (int rank = 0; rank < ranks->size; rank++) {
        if (ranks->pids[rank] != 0) fail(ranks, rank, "does not end after another rank has failed");
    }
    kill_left(ranks);
}

// Waits until all ranks have ended. Returns their worst exit code; -1: one died.
static int wait_for_all(struct ranks *ranks) {
    uint64_t until_ns = 0; // 0: no rank has failed
    int worst = 0;
    bool has_died = false;
    while (ranks->left > 0) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, until_ns == 0 ? 0 : WNOHANG);
        if (pid < 0 && errno != EINTR) return -1;
        if (pid > 0) {
            int end = note_end(ranks, pid, status);
            has_died = has_died || end < 0;
            if (end > worst) worst = end;
            if (end != 0 && until_ns == 0)
                until_ns = clock_ns() + (uint64_t)((ranks->timeout_s + GRACE_S) * 1e9);
        } else if (until_ns != 0 && clock_ns() > until_ns) {
            end_late_ranks(ranks);
            until_ns = 0;
        } else {
            usleep(POLL_US);
        }
    }
    return has_died ? -1 : worst;
}

int launch_processes(int size, double timeout_s, rank_function *rank_main, void *argument) {
    struct ranks ranks = {.size = size > 0 ? size : USUAL_RANKS, .timeout_s = timeout_s};
    ranks.control =
        mmap(NULL, control_bytes(ranks.size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ranks.control == MAP_FAILED) {
        fprintf(stderr, "gentables-bench: out of memory\n");
        return -1;
    }
    ranks.run_id = clock_ns() ^ (uint64_t)getpid() << 40;
    signal(SIGCHLD, SIG_DFL); // some launchers ignore it, and then waitpid returns no status
    bool is_started = start(&ranks, rank_main, argument) == 0;
    if (!is_started) {
        fprintf(stderr, "gentables-bench: cannot start a process: %s\n", strerror(errno));
        kill_left(&ranks);
    }
    int status = wait_for_all(&ranks);
    munmap(ranks.control, control_bytes(ranks.size));
    return is_started ? status : -1;
}
