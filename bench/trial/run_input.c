// Runs the input of a pass or a trial; see run_input.h.
#include "run_input.h"

#include <stdio.h>

#include "calls/backend.h"
#include "plugin_loader/plugin_rank.h"
#include "protocol/pass_input.h"
#include "protocol/protocol.h"
#include "ranks/fault_report.h"
#include "ranks/watch.h"
#include "trial.h"

int run_input(struct group *group, const char *path, enum input_use use, double timeout_s) {
    struct pass_input input;
    char reason[REASON_SIZE] = "";
    // Deadlines are those of single candidates here, a little shorter than those of waits for them.
    watch_rest(use == INPUT_PASS ? PHASE_PASS : PHASE_TRIAL);
    fault_on_late(plugins_cancel);
    fault_begin(group->rank, 0.9 * timeout_s);
    fault_work("agreement");
    int status = pass_input_read(&input, path, group, reason);
    if (status == 0 && (status = pass_input_agree(&input, group, reason)) != 0) pass_input_free(&input);
    if (status != 0) {
        if (group->rank == 0) fprintf(stderr, "gentables-bench: agreement: %s\n", reason);
        fault_end();
        return 1;
    }
    fault_work("start");
    status = use == INPUT_PASS ? backend->run_pass(group, &input)
                               : trial_run(group, &input, use == INPUT_BRIEF_TRIAL, protocol_out());
    if (status < 0) return -1;
    fault_end();
    pass_input_free(&input);
    return status;
}
