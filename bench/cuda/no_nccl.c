// Replaces nccl.c and communicator.c if the build found no header of NCCL.
#include <stdio.h>

#include "candidate.h"
#include "libraries/nccl_library.h"

int nccl_version(void) {
    return 0;
}

void nccl_abort_all(void) {}

struct communicator *nccl_open(struct device *device, const void **comm, char reason[]) {
    (void)device;
    (void)comm;
    snprintf(reason, REASON_SIZE, "built without NCCL: the build found no nccl.h");
    return NULL;
}

void nccl_close(struct communicator *communicator) {
    (void)communicator;
}

static const char *no_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return "built without NCCL";
}

static int no_setup(const struct candidate *candidate, struct group *group, void **state,
                    char reason[REASON_SIZE]) {
    (void)candidate;
    (void)group;
    (void)state;
    snprintf(reason, REASON_SIZE, "built without NCCL: the build found no nccl.h");
    return -1;
}

const struct strategy strategy_cuda_nccl = {.supports = no_supports, .setup = no_setup};
