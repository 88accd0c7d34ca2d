// Epilogues in kernels of their own, after an allreduce: one kernel, or one for each step. With joint
// launches, these are joint as well.
//
// With a GPU for each rank, launches are programmatic, as those of fused kernels, so that a comparison shows
// what the fusion gains. In loopback they are not: blocks that wait for their own rank's allreduce would take
// the room of another rank's, for which that one waits.
#include <stdio.h>

#include "candidate.h"
#include "elements/fusion.h"

enum { MOST_THREADS = 1024, BLOCKS_PER_MULTIPROCESSOR = 2, NAME_SIZE = 96 };

// What a step reads and writes besides residual_out.
struct step {
    bool reads_norm; // else the sum, which is at residual_out
    bool writes_norm;
};

static void fill_parameters(const struct device *device, const struct call *call, struct step step,
                            struct EpilogueParameters *parameters) {
    bool joint = device->joint != NULL;
    parameters->call = call_parameters(device, call);
    for (int i = 0; i < (joint ? device->group->size : 1); i++) {
        const struct call *of = joint ? &device->joint->calls[i][device->slot] : call;
        struct RankParameters *mine = &parameters->ranks[i];
        *mine = rank_parameters(joint ? i : device->group->rank, of);
        mine->input = step.reads_norm ? of->norm_out : of->residual_out;
        if (step.writes_norm) mine->out = of->norm_out;
    }
}

static bool launch_step(struct device *device, const char *name, const struct call *call, struct step step) {
    struct EpilogueParameters parameters = {.call = {.num_tokens = 0}};
    unsigned sharers = device->options.loopback ? (unsigned)device->group->size : 1;
    unsigned most = (unsigned)(device->multiprocessors * BLOCKS_PER_MULTIPROCESSOR) / sharers;
    if (most == 0) most = 1;
    device->last = (struct grid){.blocks = call->num_tokens < most ? (unsigned)call->num_tokens : most,
                                 .ranks = device->joint != NULL ? sharers : 1,
                                 .threads = row_threads(call, MOST_THREADS),
                                 .programmatic = !device->options.loopback};
    if (!device_enqueues(device)) return true;
    fill_parameters(device, call, step, &parameters);
    return device_launch(device, device_kernel(device, name), device->last, &parameters, sizeof parameters);
}

static bool launch_one(struct device *device, const struct call *call) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "gentables_epilogue_%s_%s", dtype_short_names[call->dtype],
             fusion_facts[call->fusion].short_name);
    return launch_step(device, name, call, (struct step){.reads_norm = false});
}

static bool launch_separately(struct device *device, const struct call *call) {
    char name[NAME_SIZE];
    const char *dtype = dtype_short_names[call->dtype];
    bool quantised = fusion_has_codes(call->fusion);
    snprintf(name, sizeof name, "gentables_add_%s", dtype);
    if (!launch_step(device, name, call, (struct step){.reads_norm = false})) return false;
    snprintf(name, sizeof name, "gentables_norm_%s", dtype);
    if (!launch_step(device, name, call, (struct step){.writes_norm = quantised})) return false;
    if (!quantised) return true;
    snprintf(name, sizeof name, "gentables_quantise_%s_%s", dtype, fusion_facts[call->fusion].short_name);
    return launch_step(device, name, call, (struct step){.reads_norm = true});
}

bool epilogue_launch(struct device *device, enum epilogue epilogue, const struct call *call) {
    if (call->fusion == FUSION_NONE) return true;
    return epilogue == EPILOGUE_SEPARATE ? launch_separately(device, call) : launch_one(device, call);
}
