// How a call on a GPU is timed, in a place (buffer_memory.h):
//
//   eager       a delay holds the stream until the host has enqueued everything, then comes a barrier of the
//               ranks on their GPUs; events are right before and after the call
//   cold        the same, with caches flushed before the barrier
//   graph       two captured chains of calls, a long and a short one, each launched like that; the time of a
//   call
//               is the difference of their times divided by the difference of their lengths, so that the cost
//               of launching a graph cancels out. Each call of either chain has results of its own
//   cold_graph  the same, with a flush before each call, less the time of a chain of flushes alone
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
// With joint launches rank 0 alone enqueues, also what poisons and hashes the results of all; the other ranks
// publish their calls.
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
static bool enqueue_copy(struct place *place, const struct call *call) {
    struct device *device = place->device;
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

static bool enqueue(struct place *place, const struct work *work, size_t shift, int slot) {
    struct device *device = place->device;
    struct call call = place_call(place, work->candidate, shift % place->cell->shifts, slot);
    struct DelayParameters none = {.nanoseconds = 0};
    device->slot = slot;
    if (work->is_nothing) return true;
    if (work->candidate != NULL) device->last = (struct grid){.blocks = 1, .ranks = 1, .threads = 32};
    if (work->candidate != NULL) return work->candidate->strategy->run(work->state, &call) == 0;
    if (!device_enqueues(device)) return true;
    if (work->empty == NULL) return enqueue_copy(place, &call);
    return device_launch(device, device_kernel(device, "gentables_empty"), *work->empty, &none, sizeof none);
}

// Publishes this rank's calls, if rank 0 enqueues them.
static bool publish(struct place *place, size_t shift) {
    struct device *device = place->device;
    if (device->joint == NULL) return true;
    device->joint->places[device->group->rank] = place;
    for (int slot = 0; slot < place->slots; slot++) {
        device->joint->calls[device->group->rank][slot] =
            place_call(place, NULL, (shift + (size_t)slot) % place->cell->shifts, slot);
    }
    device->is_published = true;
    return group_barrier(device->group);
}

// ---- times -------------------------------------------------------------------------------------------

// Whether results are hashed right after the timed work: only a candidate's calls have any.
static bool is_hashed_after(const struct work *work) {
    return work->candidate != NULL;
}

// Calls `act` for the places whose calls this rank enqueues: its own, or, with joint launches, all ranks'.
static bool each_place(struct place *place, struct span span,
                       bool (*act)(const struct place *place, struct device *by, struct span span)) {
    struct device *by = place->device;
    if (by->joint == NULL) return act(place, by, span);
    for (int rank = 0; rank < by->group->size; rank++) {
        if (!act(by->joint->places[rank], by, span)) return false;
    }
    return true;
}

// Removes the data from the caches.
static bool flush(struct device *device) {
    CUresult result = device->driver->cuMemsetD8Async(device->flush, 0, 2 * device->l2_bytes, device->stream);
    return device_ok(device, result, "a flush");
}

static bool is_in_place(const struct work *work) {
    return work->candidate != NULL && plugins_is_in_place(work->candidate);
}

// Copies the inputs of calls to where they work in place.
static bool put_inputs(struct place *place, const struct work *work, size_t shift, struct span span) {
    struct device *device = place->device;
    for (int slot = span.first; slot < span.first + span.calls; slot++) {
        size_t of = (shift + (size_t)slot) % place->cell->shifts;
        struct call from = place_call(place, NULL, of, slot),
                    to = place_call(place, work->candidate, of, slot);
        CUresult result = device->driver->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to.input,
                                                            (CUdeviceptr)(uintptr_t)from.input,
                                                            place_input_bytes(place->cell), device->stream);
        if (!device_ok(device, result, "a copy")) return false;
    }
    return true;
}

// Enqueues the delay, the poison for results that are hashed afterwards, inputs in place, a flush in cold
// mode, the ranks' barrier, and the event at the beginning.
static bool begin(struct place *place, const struct work *work, size_t shift, struct span span) {
    struct device *device = place->device;
    const struct cuda_driver *driver = device->driver;
    place->begun_ns = clock_ns();
    if (!device_delay(device, device->delay_ns)) return false;
    if (is_hashed_after(work) && !each_place(place, span, place_poison_slots)) return false;
    if (is_in_place(work) && !put_inputs(place, work, shift, span)) return false;
    if (place->mode == MODE_COLD && !flush(device)) return false;
    if (device->reach != REACH_NONE && device->group->size > 1 && !device_barrier(device, 1)) return false;
    return device_ok(device, driver->cuEventRecord(device->before, device->stream), "an event");
}

// Enqueues the event at the end and the hashes after it, waits, and reads the time.
static bool end(struct place *place, const struct work *work, struct span span, double *time_us) {
    struct device *device = place->device;
    const struct cuda_driver *driver = device->driver;
    float ms = 0;
    if (!device_ok(device, driver->cuEventRecord(device->after, device->stream), "an event")) return false;
    place->is_late = clock_ns() - place->begun_ns > device->delay_ns;
    if (is_hashed_after(work) && !each_place(place, span, place_enqueue_hashes)) return false;
    if (!device_ok(device, driver->cuEventRecord(device->checked, device->stream), "an event") ||
        !device_wait(device, device->checked))
        return false;
    CUresult result = driver->cuEventElapsedTime(&ms, device->before, device->after);
    *time_us = (double)ms * 1000;
    return device_ok(device, result, "a time");
}

// Times the calls of a span once. The call in the first slot of the place has data set `shift`. All ranks
// have published their calls.
typedef bool timing(struct place *place, const struct work *work, size_t shift, struct span span,
                    double *time_us);

// Collective. Times until no host was late, MOST_TRIES_IN_TIME times at most. After a single late try the
// delay stays: the host may only have been interrupted.
static bool time_in_time(struct place *place, timing *once, const struct work *work, size_t shift,
                         struct span span, double *time_us) {
    struct device *device = place->device;
    for (int tries = 1;; tries++) {
        *time_us = 0;
        place->is_late = false;
        if (!once(place, work, shift, span, time_us)) return false;
        if (group_min(device->group, !place->is_late) != 0) return true;
        if (tries == MOST_TRIES_IN_TIME) {
            place->was_never_early = true;
            return true;
        }
        if (tries > 1 && device->delay_ns < LONGEST_DELAY_NS) device->delay_ns *= 2;
    }
}

// ---- eager ----------------------------------------------------------------------------------------------

static bool time_call(struct place *place, const struct work *work, size_t shift, struct span span,
                      double *time_us) {
    struct device *device = place->device;
    bool enqueues = device_enqueues(device);
    if (!group_barrier(device->group)) return false;
    if (enqueues && !begin(place, work, shift, span)) return false;
    device->group->unseen_ns = 0;
    if (!enqueue(place, work, shift, span.first)) return false;
    if (enqueues && !end(place, work, span, time_us)) return false;
    *time_us += (double)device->group->unseen_ns / 1000;
    return true;
}

static bool time_eager(struct place *place, const struct work *work, size_t shift, double *time_us) {
    return publish(place, shift) &&
           time_in_time(place, time_call, work, shift, place_all_slots(place), time_us);
}

// ---- graphs -----------------------------------------------------------------------------------------------

// The slots of a sample's long chain; the rest, at least one, are those of the short chain.
static struct span long_chain(const struct place *place) {
    int fewer = place->slots / (SHORT_CHAIN + 1);
    return (struct span){0, place->slots - (fewer > 0 ? fewer : 1)};
}

static struct span short_chain(const struct place *place) {
    int calls = long_chain(place).calls;
    return (struct span){calls, place->slots - calls};
}

static bool same_work(const struct work *a, const struct work *b) {
    return a->candidate == b->candidate && a->state == b->state && a->empty == b->empty &&
           a->writes_norm == b->writes_norm && a->is_nothing == b->is_nothing;
}

// Captures a chain. The other ranks have published their calls.
static bool capture(struct place *place, struct graph *graph) {
    struct device *device = place->device;
    const struct cuda_driver *driver = device->driver;
    CUgraph captured = NULL;
    CUresult result = driver->cuStreamBeginCapture(device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (!device_ok(device, result, "a capture")) return false;
    bool enqueued = true;
    const struct span *span = &graph->span;
    for (int slot = span->first; slot < span->first + span->calls && enqueued; slot++) {
        enqueued = (place->mode != MODE_COLD_GRAPH || flush(device)) &&
                   enqueue(place, &graph->work, graph->shift + (size_t)slot, slot);
    }
    result = driver->cuStreamEndCapture(device->stream, &captured);
    if (enqueued && result == CUDA_SUCCESS) result = driver->cuGraphInstantiate(&graph->exec, captured, 0);
    if (captured != NULL) driver->cuGraphDestroy(captured);
    if (enqueued && result == CUDA_SUCCESS) result = driver->cuGraphUpload(graph->exec, device->stream);
    return enqueued && device_ok(device, result, "a graph") && device_finish(device);
}

// The chain in these slots, captured at most once; NULL: the capture failed.
static struct graph *find_graph(struct place *place, const struct work *work, size_t shift,
                                struct span span) {
    for (int i = 0; i < place->graph_count; i++) {
        struct graph *graph = &place->graphs[i];
        if (same_work(&graph->work, work) && graph->shift == shift && graph->span.first == span.first)
            return graph;
    }
    if (place->graph_count == MOST_GRAPHS) place_drop_graphs(place); // they are captured again when needed
    struct graph *graph = &place->graphs[place->graph_count];
    *graph = (struct graph){.work = *work, .shift = shift, .span = span};
    if (!capture(place, graph)) return NULL;
    place->graph_count++;
    return graph;
}

static bool time_chain(struct place *place, const struct work *work, size_t shift, struct span span,
                       double *time_us) {
    struct device *device = place->device;
    struct graph *graph = NULL;
    if (device_enqueues(device)) {
        graph = find_graph(place, work, shift, span); // captured while no rank's kernels wait for another's
        if (graph == NULL) return false;
    }
    if (!group_barrier(device->group)) return false;
    if (!device_enqueues(device)) return true;
    if (!begin(place, work, shift, span)) return false;
    if (!device_ok(device, device->driver->cuGraphLaunch(graph->exec, device->stream), "launching a graph"))
        return false;
    return end(place, work, span, time_us);
}

// The time of one call, from how much longer a long chain takes than a short one.
static bool time_slope(struct place *place, const struct work *work, size_t shift, double *time_us) {
    struct span many = long_chain(place), few = short_chain(place);
    double of_few_us = 0, of_many_us = 0;
    if (!time_in_time(place, time_chain, work, shift, few, &of_few_us)) return false;
    if (!time_in_time(place, time_chain, work, shift, many, &of_many_us)) return false;
    *time_us = (of_many_us - of_few_us) / (many.calls - few.calls);
    return true;
}

static bool time_graphs(struct place *place, const struct work *work, size_t shift, double *time_us) {
    const struct work nothing = {.is_nothing = true};
    double flush_us = 0;
    if (!publish(place, shift)) return false;
    for (int i = 0; i < MOST_TRIES_AT_A_SLOPE; i++) {
        place->was_never_early = false; // this try is the one that counts
        if (place->mode == MODE_COLD_GRAPH && !time_slope(place, &nothing, 0, &flush_us)) return false;
        if (!time_slope(place, work, shift, time_us)) return false;
        *time_us -= flush_us;
        bool is_enough = *time_us > 0 || !device_enqueues(place->device);
        if (group_min(place->device->group, is_enough) != 0) return true;
    }
    place->has_no_slope = true;
    *time_us = 0;
    return true;
}

// ---- samples ----------------------------------------------------------------------------------------------

// Collective. With a `reason`, the time is not valid.
static bool time_work(struct place *place, const struct work *work, size_t shift, double *time_us,
                      char reason[REASON_SIZE]) {
    struct device *device = place->device;
    place->is_amid = is_in_place(work) && place->cell->shape.op == OP_REDUCESCATTER;
    place->hashes_are_enqueued = place->hashes_are_known = place->was_never_early = false;
    place->has_no_slope = false;
    bool timed = place_is_chain(place->mode) ? time_graphs(place, work, shift, time_us)
                                             : time_eager(place, work, shift, time_us);
    device->is_published = false;
    place->hashes_are_enqueued = is_hashed_after(work);
    if (place->was_never_early) {
        snprintf(
            reason, REASON_SIZE,
            "a host took longer than its GPU's delay of %g us, %d times in a row: its time, not the GPU's",
            (double)device->delay_ns / 1000, MOST_TRIES_IN_TIME);
    } else if (place->has_no_slope) {
        snprintf(reason, REASON_SIZE, "a chain of %d calls took no longer than one of %d, %d times in a row",
                 long_chain(place).calls, short_chain(place).calls, MOST_TRIES_AT_A_SLOPE);
    }
    return timed && group_barrier(device->group);
}

int place_sample(void *of, const struct candidate *candidate, void *state, size_t shift, struct stamp *stamp,
                 char reason[REASON_SIZE]) {
    struct place *place = of;
    struct work work = {.candidate = candidate, .state = state, .writes_norm = place->writes_norm};
    double time_us;
    if (!time_work(place, &work, shift, &time_us, reason)) return -1;
    place->has_norm = place->writes_norm;
    place->writes_norm = false;
    *stamp = (struct stamp){.start_ns = 0, .end_ns = (uint64_t)(time_us * 1000 + 0.5)};
    return 0;
}

int place_floor(void *of, const struct candidate *candidate, void *state, double *time_us,
                char reason[REASON_SIZE]) {
    struct place *place = of;
    double samples[FLOOR_SAMPLES], mine_us;
    (void)candidate;
    (void)state;
    place->grid_of_floor = place->device->last;
    struct work work = {.empty = &place->grid_of_floor};
    for (int i = 0; i < FLOOR_SAMPLES; i++) {
        if (!time_work(place, &work, 0, &mine_us, reason)) return -1;
        samples[i] = group_max(place->device->group, mine_us);
    }
    *time_us = median(samples, FLOOR_SAMPLES);
    // The next floor has another shape and other graphs.
    for (int i = 0; i < place->graph_count;) {
        if (place->graphs[i].work.empty == NULL) {
            i++;
            continue;
        }
        place->device->driver->cuGraphExecDestroy(place->graphs[i].exec);
        place->graphs[i] = place->graphs[--place->graph_count];
    }
    return 0;
}
