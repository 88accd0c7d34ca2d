// What a rank does that was given a plan: tunes, or tries one candidate; see tune.h and trial.h.
#include <stdio.h>

#include "blame.h"
#include "harness.h"
#include "host/group_mpi.h"
#include "host/plans.h"
#include "trial.h"
#include "tune.h"

static int tune(struct group *group, const struct tune_plan *plan) {
    struct harness harness;
    int status = harness_open(&harness, group);
    watch_rest();
    blame_work(NULL);
    if (status == 0) status = tune_run(&harness, plan, stdout);
    if (status < 0) return -1;
    blame_work("end");
    harness_close(&harness);
    return status;
}

int plans_run(struct group *group, const char *path, bool is_trial) {
    struct tune_plan plan;
    char reason[REASON_SIZE] = "";
    watch_rest(); // here deadlines are of single candidates, and a little shorter than those of waits for
                  // them
    blame_begin(group->rank, 0.9 * group->timeout_s);
    blame_work("agreement");
    int status = tune_plan_read(&plan, path, group_comm(group), reason);
    if (status == 0 && (status = tune_plan_agree(&plan, group, reason)) != 0) tune_plan_free(&plan);
    if (status != 0) {
        if (group->rank == 0) fprintf(stderr, "gentables-bench: agreement: %s\n", reason);
        blame_end();
        return 1;
    }
    blame_work("start");
    status = is_trial ? trial_run(group, &plan, stdout) : tune(group, &plan);
    if (status < 0) return -1;
    blame_end();
    tune_plan_free(&plan);
    return status;
}
