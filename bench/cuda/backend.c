// The backend of GPUs. Each rank has a device (device.h); in loopback all ranks share one GPU. A cell has
// buffers in the memory of the device (cell_buffers.h). See calls/backend.h.
#include "calls/backend.h"

#include <math.h>
#include <stdio.h>

#include "candidate.h"
#include "cell_buffers.h"
#include "cuda_services.h"

#include "elements/statistics.h"
#include "plugin_loader/plugin_limits.h"
#include "plugin_loader/plugins.h"
#include "protocol/cell_pass.h"
#include "protocol/protocol.h"

enum { ROUNDS = 200, ROUND_SAMPLES = 9 }; // of a barrier on the GPUs

static void describe_rank(const struct group *group, char text[], size_t text_size) {
    const struct device *device = group->device;
    snprintf(text, text_size, "device %2d [%s] %s", device->ordinal, device->bus, device->name);
}

static const char *placement(const struct group *group) {
    return device_of(group)->options.loopback ? "loopback" : "dedicated";
}

// The incumbent of this SM version; in loopback first loopback's own, then that of GPUs with links.
static bool incumbent(const struct group *group, int which, char suffix[], size_t suffix_size) {
    const struct device *device = group->device;
    bool loopback = device->options.loopback;
    const char *word = loopback && which == 0 ? "-loopback" : "";
    snprintf(suffix, suffix_size, "_sm%d%s", device->sm, word);
    return which < 1 + loopback;
}

// If the output has described the devices, their state at the end follows.
static void close_device(struct group *group) {
    if (group_max(group, device_of(group)->is_described) > 0) detect_write_end(group, protocol_out());
    device_close(group);
}

// Times a barrier of the ranks on their GPUs, as the mean of many in one launch; with time slices of one GPU
// they would take seconds. It follows each cell, so it also records the clocks of a GPU that was busy until
// now.
static int round_trip(struct group *group, double *time_us) {
    struct device *device = device_of(group);
    double samples[ROUND_SAMPLES];
    *time_us = 0;
    detect_note_clocks(device);
    if (device->reach == REACH_NONE || group->size == 1 || device->options.shares_gpu) return 0;
    for (int i = 0; i < ROUND_SAMPLES; i++) {
        float ms = 0;
        if (!group_barrier(group)) return -1;
        if (device_enqueues(device)) {
            const struct cuda_driver *driver = device->driver;
            if (!device_barrier(device, 1) ||
                !device_ok(device, driver->cuEventRecord(device->before, device->stream), "an event") ||
                !device_barrier(device, ROUNDS) || !device_finish(device) ||
                !device_ok(device, driver->cuEventElapsedTime(&ms, device->before, device->after), "a time"))
                return -1;
        }
        samples[i] = group_max(group, (double)ms * 1000 / (double)ROUNDS);
    }
    *time_us = median(samples, ROUND_SAMPLES);
    return 0;
}

// The minimum number of messages over each rank's links, in one direction. Our kernels: their own number.
// Other candidates: as many as the op needs; fewer if there is a switch that adds.
static double link_factor(const struct group *group, const struct candidate *candidate, enum op op) {
    const struct device *device = group->device;
    if (candidate->strategy == &strategy_cuda_kernel)
        return cuda_kernel_facts[((const struct kernel_detail *)candidate->detail)->kernel]
            .link_factors[group->size];
    double factor = op_bus_factor(op, group->size);
    bool in_switch = op == OP_ALLREDUCE && device->can_multicast;
    return in_switch ? fmin(factor, cuda_kernel_facts[KERNEL_NVLS_TWOSHOT].link_factors[group->size])
                     : factor;
}

// The time of these messages at the bandwidth of the links.
static double link_us(const struct group *group, const struct candidate *candidate, const struct call *call) {
    const struct device *device = group->device;
    if (device->link_bytes_per_us <= 0) return 0;
    return link_factor(group, candidate, call->op) * (double)call_bytes(call) / device->link_bytes_per_us;
}

static const char *refusal_of(const struct candidate *candidate, const struct group *group,
                              const struct call *call) {
    const char *refusal = candidate->plugin == NULL ? NULL : plugins_refusal(candidate, group, call);
    if (refusal == NULL && plugins_has_epilogue_apart(candidate)) refusal = call_refusal(group->device, call);
    return refusal != NULL ? refusal : candidate->strategy->supports(group, call);
}

static int run_pass(struct group *group, const struct pass_input *input) {
    return cell_pass_run(group, input, protocol_out());
}

static const struct backend cuda_backend = {
    .name = "cuda",
    .candidates = cuda_candidates,
    .candidate_count = &cuda_candidate_count,
    .fallback = "NCCL",
    .incumbent = incumbent,
    .services = &cuda_plugin_services,
    .modes = {[MODE_EAGER] = true, [MODE_GRAPH] = true, [MODE_COLD] = true, [MODE_COLD_GRAPH] = true},
    .hang_timeouts = 8, // GPUs and NCCL have deadlines of their own, before that of the group
    .refusal = refusal_of,
    .run_pass = run_pass,
    .describe = detect_describe,
    .open = device_open,
    .close = close_device,
    .describe_rank = describe_rank,
    .write_devices = detect_write,
    .placement = placement,
    .round_trip = round_trip,
    .open_buffers = buffers_open,
    .close_buffers = buffers_close,
    .buffer_bytes = buffer_bytes,
    .call = buffers_call,
    .slots = buffers_slots,
    .poison = buffers_poison,
    .sample = buffers_sample,
    .finish = buffers_finish,
    .fetch = buffers_fetch,
    .hash = buffers_hash,
    .is_unchanged = buffers_are_unchanged,
    .link_us = link_us,
    .floor = buffers_floor,
};

const struct backend *const backend = &cuda_backend;
