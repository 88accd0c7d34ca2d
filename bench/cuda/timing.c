// How a call on a GPU is timed, in the buffers of a cell (buffer_memory.h):
//
//   eager       a delay holds the stream until the host has enqueued everything, then comes a barrier of the
//               ranks on their GPUs; events are right before and after the call
//   cold        the same, with caches flushed before the barrier
//   graph       two captured chains of calls, a long and a short one, each launched in the same way. The time
//               of a call is the difference of their times divided by the difference of their lengths, which
//               excludes the cost of launching a graph. Each call of either chain has results of its own
//   cold_graph  the same, with a flush before each call, less the time of a chain of flushes alone. A barrier
//               of the ranks follows each flush in both chains: no call waits for another rank's flush
//
// A time is valid if the host enqueued everything within the delay; else it includes the host's time: then
// the call is timed again, with longer delays. A call for which the host is always late has no time. Events
// do not include what a strategy does on the host before it launches (AUTO's lookup); that is added to the
// time of a call that is launched by itself, and is not part of a graph.
//
// Timed results are also checked, in the same stream and before the host waits: they are poisoned after the
// delay, and hashed right after the last event. Work on a candidate's own stream that this stream does not
// wait for comes too late for the hash; work that does not wait for this stream comes too early.
//
// With joint launches rank 0 alone enqueues, including the poison and the hashes of the results of all ranks;
// the other ranks publish their calls.
#include <stdio.h>

#include "buffer_memory.h"
#include "elements/statistics.h"
#include "plugin_loader/plugin_limits.h"

enum {
    LONGEST_DELAY_NS = 100000000, // reached from 100 us within the tries below
    MOST_TRIES_IN_TIME = 12,
    FLOOR_SAMPLES = 9,
    MOST_TRIES_AT_A_SLOPE = 12,
    COPY_BLOCKS_PER_MULTIPROCESSOR = 2,
    COPY_THREADS = 1024,
};

// ---- one call -----------------------------------------------------------------------------------------

// As many blocks as the GPU holds, for all ranks that share it, or as are useful.
static struct grid grid_of_copy(const struct device *device, size_t words) {
    unsigned ranks = device_is_joint(device) ? (unsigned)device->group->size : 1;
    size_t useful =
        words == 0 ? 1 : (words + COPY_THREADS - 1) / COPY_THREADS; // a launch has at least one block
    size_t blocks = (unsigned)(device->multiprocessors * COPY_BLOCKS_PER_MULTIPROCESSOR) / ranks;
    if (blocks == 0) blocks = 1;
    return (struct grid){
        .blocks = (unsigned)(useful < blocks ? useful : blocks), .ranks = ranks, .threads = COPY_THREADS};
}

// Bytes that any way to do the call must read and write: the size of the smaller buffer.
static size_t least_bytes(const struct call *call) {
    const struct traffic *traffic = call->traffic;
    if (traffic == NULL) return call_bytes(call);
    size_t sent = traffic->send_elements, received = traffic->receive_elements;
    return (sent < received ? sent : received) * dtype_sizes_bytes[call->dtype];
}

// The address of the 16 bytes that contain `pointer`: data sets with odd rows begin anywhere, and threads
// read whole accesses.
static const void *whole_words(const void *pointer) {
    return (const void *)((uintptr_t)pointer & ~(uintptr_t)15);
}

// Enqueues what any way to do the call must do: read the input, and write as much.
static bool enqueue_copy(struct cell_buffers *buffers, const struct call *call) {
    struct device *device = buffers->device;
    struct ArrayParameters parameters = {.words = least_bytes(call) / 16};
    struct grid grid = grid_of_copy(device, parameters.words);
    for (unsigned rank = 0; rank < grid.ranks; rank++) {
        const struct call *of = grid.ranks > 1 ? &device->joint->calls[rank][device->slot] : call;
        parameters.from[rank] = whole_words(of->input);
        parameters.to[rank] = of->residual_out ? of->residual_out : of->out;
    }
    return device_launch(device, device_kernel(device, "gentables_copy"), grid, &parameters,
                         sizeof parameters);
}

static bool enqueue(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set, int slot) {
    struct device *device = buffers->device;
    struct call call = buffers_call(buffers, work->candidate, data_set % buffers->cell->data_sets, slot);
    struct DelayParameters none = {.nanoseconds = 0};
    device->slot = slot;
    if (work->is_nothing) return true;
    if (work->candidate != NULL) device->last = (struct grid){.blocks = 1, .ranks = 1, .threads = 32};
    if (work->candidate != NULL) return work->candidate->strategy->run(work->state, &call) == 0;
    if (!device_enqueues(device)) return true;
    if (work->empty == NULL) return enqueue_copy(buffers, &call);
    return device_launch(device, device_kernel(device, "gentables_empty"), *work->empty, &none, sizeof none);
}

// Publishes this rank's calls, if rank 0 enqueues them.
static bool publish(struct cell_buffers *buffers, size_t data_set) {
    struct device *device = buffers->device;
    if (device->joint == NULL) return true;
    device->joint->buffers[device->group->rank] = buffers;
    for (int slot = 0; slot < buffers->slots; slot++) {
        device->joint->calls[device->group->rank][slot] =
            buffers_call(buffers, NULL, (data_set + (size_t)slot) % buffers->cell->data_sets, slot);
    }
    device->is_published = true;
    return group_barrier(device->group);
}

// ---- times -------------------------------------------------------------------------------------------

// Whether results are hashed right after the timed work: only a candidate's calls have any.
static bool is_hashed_after(const struct timed_work *work) {
    return work->candidate != NULL;
}

// Calls `act` for the buffers of the calls that this rank enqueues: its own, or, with joint launches, all
// ranks'.
static bool each_ranks_buffers(struct cell_buffers *buffers, struct slot_range range,
                               bool (*act)(const struct cell_buffers *buffers, struct device *by,
                                           struct slot_range range)) {
    struct device *by = buffers->device;
    if (by->joint == NULL) return act(buffers, by, range);
    for (int rank = 0; rank < by->group->size; rank++) {
        if (!act(by->joint->buffers[rank], by, range)) return false;
    }
    return true;
}

// Removes the data from the caches.
static bool flush(struct device *device) {
    CUresult result = device->driver->cuMemsetD8Async(device->flush, 0, 2 * device->l2_bytes, device->stream);
    return device_ok(device, result, "a flush");
}

// Barrier of the ranks on their GPUs. Ranks that do not reach each other's memory have none.
static bool meet(struct device *device) {
    return device->reach == REACH_NONE || device->group->size == 1 || device_barrier(device, 1);
}

// What precedes each call of a chain in cold_graph. A joint launch begins on all ranks at once.
static bool flush_and_meet(struct device *device) {
    return flush(device) && (device_is_joint(device) || meet(device));
}

static bool is_in_place(const struct timed_work *work) {
    return work->candidate != NULL && plugins_is_in_place(work->candidate);
}

// Copies the inputs of in-place calls to their outputs.
static bool put_inputs(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                       struct slot_range range) {
    struct device *device = buffers->device;
    for (int slot = range.first; slot < range.first + range.calls; slot++) {
        size_t of = (data_set + (size_t)slot) % buffers->cell->data_sets;
        struct call from = buffers_call(buffers, NULL, of, slot),
                    to = buffers_call(buffers, work->candidate, of, slot);
        CUresult result = device->driver->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to.input,
                                                            (CUdeviceptr)(uintptr_t)from.input,
                                                            cell_input_bytes(buffers->cell), device->stream);
        if (!device_ok(device, result, "a copy")) return false;
    }
    return true;
}

// Enqueues the delay, the poison for results that are hashed afterwards, inputs of in-place calls, a flush
// in cold mode, the ranks' barrier, and the event at the beginning.
static bool begin(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                  struct slot_range range) {
    struct device *device = buffers->device;
    const struct cuda_driver *driver = device->driver;
    buffers->begun_ns = clock_ns();
    if (!device_delay(device, device->delay_ns)) return false;
    if (is_hashed_after(work) && !each_ranks_buffers(buffers, range, buffers_poison_slots)) return false;
    if (is_in_place(work) && !put_inputs(buffers, work, data_set, range)) return false;
    if (buffers->mode == MODE_COLD && !flush(device)) return false;
    if (!meet(device)) return false;
    return device_ok(device, driver->cuEventRecord(device->before, device->stream), "an event");
}

// Enqueues the event at the end and the hashes after it, waits, and reads the time.
static bool end(struct cell_buffers *buffers, const struct timed_work *work, struct slot_range range,
                double *time_us) {
    struct device *device = buffers->device;
    const struct cuda_driver *driver = device->driver;
    float ms = 0;
    if (!device_ok(device, driver->cuEventRecord(device->after, device->stream), "an event")) return false;
    buffers->is_late = clock_ns() - buffers->begun_ns > device->delay_ns;
    if (is_hashed_after(work) && !each_ranks_buffers(buffers, range, buffers_enqueue_hashes)) return false;
    if (!device_ok(device, driver->cuEventRecord(device->checked, device->stream), "an event") ||
        !device_wait(device, device->checked))
        return false;
    CUresult result = driver->cuEventElapsedTime(&ms, device->before, device->after);
    *time_us = (double)ms * 1000;
    return device_ok(device, result, "a time");
}

// Times the calls of a range once. The call in the first slot has data set `data_set`. All ranks
// have published their calls.
typedef bool timing(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                    struct slot_range range, double *time_us);

// Collective. Times until no host was late, MOST_TRIES_IN_TIME times at most. After a single late try the
// delay stays: the host may only have been interrupted.
static bool time_in_time(struct cell_buffers *buffers, timing *once, const struct timed_work *work,
                         size_t data_set, struct slot_range range, double *time_us) {
    struct device *device = buffers->device;
    for (int tries = 1;; tries++) {
        *time_us = 0;
        buffers->is_late = false;
        if (!once(buffers, work, data_set, range, time_us)) return false;
        if (group_min(device->group, !buffers->is_late) != 0) return true;
        if (tries == MOST_TRIES_IN_TIME) {
            buffers->was_never_early = true;
            return true;
        }
        if (tries > 1 && device->delay_ns < LONGEST_DELAY_NS) device->delay_ns *= 2;
    }
}

// ---- eager ----------------------------------------------------------------------------------------------

static bool time_call(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                      struct slot_range range, double *time_us) {
    struct device *device = buffers->device;
    bool enqueues = device_enqueues(device);
    if (!group_barrier(device->group)) return false;
    if (enqueues && !begin(buffers, work, data_set, range)) return false;
    device->group->unseen_ns = 0;
    if (!enqueue(buffers, work, data_set, range.first)) return false;
    if (enqueues && !end(buffers, work, range, time_us)) return false;
    *time_us += (double)device->group->unseen_ns / 1000;
    return true;
}

static bool time_eager(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                       double *time_us) {
    return publish(buffers, data_set) &&
           time_in_time(buffers, time_call, work, data_set, buffers_all_slots(buffers), time_us);
}

// ---- graphs -----------------------------------------------------------------------------------------------

// The slots of a sample's long chain; the rest, at least one, are those of the short chain.
static struct slot_range long_chain(const struct cell_buffers *buffers) {
    int fewer = buffers->slots / (SHORT_CHAIN + 1);
    return (struct slot_range){0, buffers->slots - (fewer > 0 ? fewer : 1)};
}

static struct slot_range short_chain(const struct cell_buffers *buffers) {
    int calls = long_chain(buffers).calls;
    return (struct slot_range){calls, buffers->slots - calls};
}

static bool same_work(const struct timed_work *a, const struct timed_work *b) {
    return a->candidate == b->candidate && a->state == b->state && a->empty == b->empty &&
           a->writes_norm == b->writes_norm && a->is_nothing == b->is_nothing;
}

// Captures a chain. The other ranks have published their calls.
static bool capture(struct cell_buffers *buffers, struct graph *graph) {
    struct device *device = buffers->device;
    const struct cuda_driver *driver = device->driver;
    CUgraph captured = NULL;
    CUresult result = driver->cuStreamBeginCapture(device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (!device_ok(device, result, "a capture")) return false;
    bool enqueued = true;
    const struct slot_range *range = &graph->range;
    for (int slot = range->first; slot < range->first + range->calls && enqueued; slot++) {
        enqueued = (buffers->mode != MODE_COLD_GRAPH || flush_and_meet(device)) &&
                   enqueue(buffers, &graph->work, graph->data_set + (size_t)slot, slot);
    }
    result = driver->cuStreamEndCapture(device->stream, &captured);
    if (enqueued && result == CUDA_SUCCESS) result = driver->cuGraphInstantiate(&graph->exec, captured, 0);
    if (captured != NULL) driver->cuGraphDestroy(captured);
    if (enqueued && result == CUDA_SUCCESS) result = driver->cuGraphUpload(graph->exec, device->stream);
    return enqueued && device_ok(device, result, "a graph") && device_finish(device);
}

// The chain in these slots, captured at most once; NULL: the capture failed.
static struct graph *find_graph(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                                struct slot_range range) {
    for (int i = 0; i < buffers->graph_count; i++) {
        struct graph *graph = &buffers->graphs[i];
        if (same_work(&graph->work, work) && graph->data_set == data_set && graph->range.first == range.first)
            return graph;
    }
    if (buffers->graph_count == MOST_GRAPHS)
        buffers_drop_graphs(buffers); // they are captured again when needed
    struct graph *graph = &buffers->graphs[buffers->graph_count];
    *graph = (struct graph){.work = *work, .data_set = data_set, .range = range};
    if (!capture(buffers, graph)) return NULL;
    buffers->graph_count++;
    return graph;
}

static bool time_chain(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                       struct slot_range range, double *time_us) {
    struct device *device = buffers->device;
    struct graph *graph = NULL;
    if (device_enqueues(device)) {
        graph =
            find_graph(buffers, work, data_set, range); // captured while no rank's kernels wait for another's
        if (graph == NULL) return false;
    }
    if (!group_barrier(device->group)) return false;
    if (!device_enqueues(device)) return true;
    if (!begin(buffers, work, data_set, range)) return false;
    if (!device_ok(device, device->driver->cuGraphLaunch(graph->exec, device->stream), "launching a graph"))
        return false;
    return end(buffers, work, range, time_us);
}

// The time of one call: the difference of a long and a short chain's times, by that of their lengths.
static bool time_slope(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                       double *time_us) {
    struct slot_range many = long_chain(buffers), few = short_chain(buffers);
    double of_few_us = 0, of_many_us = 0;
    if (!time_in_time(buffers, time_chain, work, data_set, few, &of_few_us)) return false;
    if (!time_in_time(buffers, time_chain, work, data_set, many, &of_many_us)) return false;
    *time_us = (of_many_us - of_few_us) / (many.calls - few.calls);
    return true;
}

static bool time_graphs(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                        double *time_us) {
    const struct timed_work nothing = {.is_nothing = true};
    double flush_us = 0;
    if (!publish(buffers, data_set)) return false;
    for (int i = 0; i < MOST_TRIES_AT_A_SLOPE; i++) {
        buffers->was_never_early = false; // this try is the one that counts
        if (buffers->mode == MODE_COLD_GRAPH && !time_slope(buffers, &nothing, 0, &flush_us)) return false;
        if (!time_slope(buffers, work, data_set, time_us)) return false;
        *time_us -= flush_us;
        bool is_enough = *time_us > 0 || !device_enqueues(buffers->device);
        if (group_min(buffers->device->group, is_enough) != 0) return true;
    }
    buffers->has_no_slope = true;
    *time_us = 0;
    return true;
}

// ---- samples ----------------------------------------------------------------------------------------------

// Collective. With a `reason`, the time is not valid.
static bool time_work(struct cell_buffers *buffers, const struct timed_work *work, size_t data_set,
                      double *time_us, char reason[REASON_SIZE]) {
    struct device *device = buffers->device;
    buffers->is_inside_larger = is_in_place(work) && buffers->cell->shape.op == OP_REDUCESCATTER;
    buffers->hashes_are_enqueued = buffers->hashes_are_known = buffers->was_never_early = false;
    buffers->has_no_slope = false;
    bool timed = mode_is_chain(buffers->mode) ? time_graphs(buffers, work, data_set, time_us)
                                              : time_eager(buffers, work, data_set, time_us);
    device->is_published = false;
    buffers->hashes_are_enqueued = is_hashed_after(work);
    if (buffers->was_never_early) {
        snprintf(
            reason, REASON_SIZE,
            "a host took longer than its GPU's delay of %g us, %d times in a row: its time, not the GPU's",
            (double)device->delay_ns / 1000, MOST_TRIES_IN_TIME);
    } else if (buffers->has_no_slope) {
        snprintf(reason, REASON_SIZE, "a chain of %d calls took no longer than one of %d, %d times in a row",
                 long_chain(buffers).calls, short_chain(buffers).calls, MOST_TRIES_AT_A_SLOPE);
    }
    return timed && group_barrier(device->group);
}

int buffers_sample(void *of, const struct candidate *candidate, void *state, size_t data_set,
                   struct stamp *stamp, char reason[REASON_SIZE]) {
    struct cell_buffers *buffers = of;
    struct timed_work work = {.candidate = candidate, .state = state, .writes_norm = buffers->writes_norm};
    double time_us;
    if (!time_work(buffers, &work, data_set, &time_us, reason)) return -1;
    buffers->has_norm = buffers->writes_norm;
    buffers->writes_norm = false;
    *stamp = (struct stamp){.start_ns = 0, .end_ns = (uint64_t)(time_us * 1000 + 0.5)};
    return 0;
}

int buffers_floor(void *of, const struct candidate *candidate, void *state, double *time_us,
                  char reason[REASON_SIZE]) {
    struct cell_buffers *buffers = of;
    double samples[FLOOR_SAMPLES], mine_us;
    (void)candidate;
    (void)state;
    buffers->grid_of_floor = buffers->device->last;
    struct timed_work work = {.empty = &buffers->grid_of_floor};
    for (int i = 0; i < FLOOR_SAMPLES; i++) {
        if (!time_work(buffers, &work, 0, &mine_us, reason)) return -1;
        samples[i] = group_max(buffers->device->group, mine_us);
    }
    *time_us = median(samples, FLOOR_SAMPLES);
    // The next empty launch has another shape and other graphs.
    for (int i = 0; i < buffers->graph_count;) {
        if (buffers->graphs[i].work.empty == NULL) {
            i++;
            continue;
        }
        buffers->device->driver->cuGraphExecDestroy(buffers->graphs[i].exec);
        buffers->graphs[i] = buffers->graphs[--buffers->graph_count];
    }
    return 0;
}
