// Runs the stages of the self-test; see self_test.h. This process never opens a device: a stage begins with a
// fork, and what it finds is in shared memory, so that it can be printed however the stage ends.
#include "self_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls/stage.h"
#include "launch.h"

enum { USUAL_TIMEOUT_S = 3, POLL_US = 1000, WORKSPACE_BYTES = 1 << 20, ARENA_BYTES = 32 << 20, PAIR = 2 };

// A stage that runs, and the wait limit of its ranks.
struct run {
    const struct stage *stage;
    struct findings *findings;
    struct device_options options;
    double timeout_s;
};

// The options of a stage; its ranks share a GPU if there are too few.
static struct device_options options_of(const struct stage *stage, const struct device_options *given,
                                        const struct findings *findings) {
    struct device_options options = *given;
    bool shares = options.loopback || findings->devices < PAIR;
    options.workspace_bytes = WORKSPACE_BYTES;
    options.arena_bytes = ARENA_BYTES;
    options.emulate_nvfp4 = true;
    options.no_programmatic = given->no_programmatic || stage->options.no_programmatic;
    options.no_multicast = given->no_multicast || stage->options.no_multicast;
    if (stage->options.only_handles != NULL) options.only_handles = stage->options.only_handles;
    options.loopback = shares || stage->options.loopback;
    options.streams =
        options.loopback && !stage->options.loopback; // only such a stage launches for all ranks
    options.shares_gpu = options.loopback && stage->has_processes;
    return options;
}

// ---- in the process of a stage ------------------------------------------------------------------------

// Runs on each rank.
static int run_rank(struct group *group, void *argument) {
    struct run *run = argument;
    char reason[REASON_SIZE] = "";
    if (backend->open(group, &run->options, reason) != 0) {
        if (group->rank == 0) snprintf(run->findings->text, FINDING_SIZE, "%s", reason);
        return STAGE_FAILED;
    }
    enum stage_end end = run->stage->on_rank(group, run->stage, run->findings);
    const char *failure = group_failure(group);
    if (failure == NULL) {
        backend->close(group);
        return (int)end;
    }
    if (group->rank == 0) {
        const char *step = run->findings->step;
        snprintf(run->findings->text, FINDING_SIZE, "%s%s%s", step, step[0] != '\0' ? ": " : "", failure);
    }
    return STAGE_FAILED;
}

// A process must not outlive the one that waits for it.
static void end_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

_Noreturn static void run_here(struct run *run) {
    struct findings *findings = run->findings;
    const struct stage *stage = run->stage;
    end_with_parent();
    int end = stage->alone != NULL   ? (int)stage->alone(findings)
              : stage->has_processes ? launch_processes(PAIR, run->timeout_s, run_rank, run)
                                     : launch(NULL, NULL, findings->ranks, run->timeout_s, run_rank, run);
    if (end < 0 && findings->text[0] == '\0')
        snprintf(findings->text, FINDING_SIZE, "the process of a rank died, at: %s", findings->step);
    findings->end = end < 0 ? STAGE_FAILED : (enum stage_end)end;
    _exit(0);
}

// ---- the program ------------------------------------------------------------------------------------

// Describes why a stage ended without a result.
static void describe_end(struct findings *findings, int status, double deadline_s, bool is_late) {
    char what[FINDING_SIZE / 2];
    if (is_late) {
        snprintf(what, sizeof what, "no end within %g s", deadline_s);
    } else if (WIFSIGNALED(status)) {
        snprintf(what, sizeof what, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        snprintf(what, sizeof what, "ended with exit code %d", WEXITSTATUS(status));
    }
    snprintf(findings->text, FINDING_SIZE, "%s%s%s", what, findings->step[0] != '\0' ? ", at: " : "",
             findings->step);
    findings->end = STAGE_FAILED;
}

// Waits for the process of a stage, and ends it after the deadline.
static void wait_for(pid_t process, struct findings *findings, double deadline_s) {
    uint64_t until_ns = clock_ns() + (uint64_t)(deadline_s * 1e9);
    int status = 0;
    bool is_late = false;
    while (waitpid(process, &status, WNOHANG) == 0) {
        is_late = clock_ns() > until_ns;
        if (!is_late) {
            usleep(POLL_US);
            continue;
        }
        kill(process, SIGKILL);
        waitpid(process, &status, 0);
        break;
    }
    if (findings->end == STAGE_UNDECIDED) describe_end(findings, status, deadline_s, is_late);
}

static void run_stage(struct run *run) {
    struct findings *findings = run->findings;
    double deadline_s = run->stage->deadline_s * run->timeout_s / USUAL_TIMEOUT_S;
    findings->end = STAGE_UNDECIDED;
    findings->text[0] = findings->step[0] = findings->notes[0] = '\0';
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) run_here(run);
    if (process < 0) {
        snprintf(findings->text, FINDING_SIZE, "no process can be started");
        findings->end = STAGE_FAILED;
        return;
    }
    wait_for(process, findings, deadline_s);
}

static void print_stage(const struct stage *stage, const struct findings *findings) {
    static const char *const words[] = {
        [STAGE_OK] = "ok", [STAGE_SKIPPED] = "skipped", [STAGE_FAILED] = "FAILED"};
    printf("%-8s%s: %s\n%s", words[findings->end], stage->name, findings->text, findings->notes);
    if (findings->end == STAGE_FAILED && stage->remedy != NULL)
        printf("%-8s%s; to run the bench without it: %s\n", "off", stage->name, stage->remedy);
    fflush(stdout);
}

// Whether the name is that of a stage; else prints the names.
static bool is_stage(const char *name) {
    for (const struct stage *stage = self_test_stages; stage->name != NULL; stage++) {
        if (strcmp(stage->name, name) == 0) return true;
    }
    fprintf(stderr, "gentables-bench: --self-test: no stage %s; stages:", name);
    for (const struct stage *stage = self_test_stages; stage->name != NULL; stage++)
        fprintf(stderr, " %s", stage->name);
    fprintf(stderr, "\n");
    return false;
}

// Runs the first stage and, if it does not fail, the others. Returns the exit code.
static int run_all(struct run *run, const struct device_options *given, const char *only) {
    int failed = 0, count = 0;
    for (const struct stage *stage = self_test_stages; stage->name != NULL; stage++) {
        if (count > 0 && only != NULL && strcmp(only, stage->name) != 0) continue;
        run->stage = stage;
        run->options = options_of(stage, given, run->findings);
        run_stage(run);
        if (run->findings->end == STAGE_NO_DEVICE) {
            fprintf(stderr, "gentables-bench: %s\n", run->findings->text);
            return 2;
        }
        print_stage(stage, run->findings);
        bool is_first = count++ == 0;
        if (run->findings->end != STAGE_FAILED) continue;
        failed++;
        if (is_first) break; // without it no other stage can run
    }
    printf("%s: %d of %d stages failed\n", failed > 0 ? "FAILED" : "passed", failed, count);
    return failed > 0;
}

int self_test_run(const struct device_options *options, const char *only, double timeout_s) {
    if (self_test_stages[0].name == NULL || launch_prefix[0] != '\0') {
        fprintf(stderr,
                "gentables-bench: --self-test is for GPUs; run it as gentables-bench-cuda --self-test\n");
        return 2;
    }
    if (only != NULL && !is_stage(only)) return 2;
    struct findings *findings =
        mmap(NULL, sizeof *findings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (findings == MAP_FAILED) {
        fprintf(stderr, "gentables-bench: out of memory\n");
        return 2;
    }
    struct run run = {.findings = findings, .timeout_s = timeout_s > 0 ? timeout_s : USUAL_TIMEOUT_S};
    int status = run_all(&run, options, only);
    munmap(findings, sizeof *findings);
    return status;
}
