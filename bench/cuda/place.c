// Cells on a GPU; see place.h. How a call is timed:
//
//   eager       a delay holds the stream until the host has enqueued all, ranks meet on their GPUs, and
//               events stand right before and after the call
//   cold        the same, and caches are flushed before ranks meet
//   graph       two captured chains of calls, a long one and a short one, each launched like that; a call
//               took the difference of their times by the difference of their lengths, so that what a
//               launch of a graph costs cancels. Each call of either chain has results of its own
//   cold_graph  the same, with a flush before each call; what a chain of flushes alone takes is taken off
//
// A time counts where the host was early enough: else it is the host's, the delay is made longer, and the
// same is timed once more; who is late however often it is tried has no time. What a strategy does on the
// host before it launches (AUTO's lookup) no event sees; it is added to the time of a call that is launched
// by itself, and into a graph it does not go.
//
// What is timed is also checked, in the same stream and before anybody waits for it: results are poisoned
// behind the delay, and hashed right behind the last event. Work on a stream of a candidate's own that this
// one does not wait for comes too late for the hash; work that does not wait for this one, too early.
//
// Where one launch is for all ranks, rank 0 alone enqueues, what poisons and hashes everybody's results, too,
// and the others say what their calls are.
#include "cuda/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/candidate.h"
#include "plugins.h"
#include "statistics.h"

enum {
    ALIGNMENT = 4096,             // of arrays: what a window of NCCL asks for
    LONGEST_DELAY_NS = 100000000, // to which the tries below lead, from 100 us on
    MOST_TRIES_IN_TIME = 12,
    FLOOR_SAMPLES = 9,
    MOST_TRIES_AT_A_SLOPE = 12,
    COPY_BLOCKS_PER_MULTIPROCESSOR = 2,
    COPY_THREADS = 1024,
    HASH_BLOCKS = 128,
    HASH_THREADS = 256,
    POISON = 0xff,             // in every byte: no right result is full of it
    POISONED_BYTES = 32 << 10, // of larger arrays, at both ends: enough to lose what came too early
    MOST_GRAPHS = 1024,
};

// What is timed: a candidate; or, without one, a copy of the input, a launch of `empty` shape, or nothing.
struct work {
    const struct candidate *candidate;
    void *state;
    const struct grid *empty;
    bool is_nothing;
    bool tells_norm; // for the check, which costs time
};

// Slots of a place, one for each call of what is timed at once.
struct span {
    int first, calls;
};

struct graph {
    struct work work;
    size_t shift;
    struct span span;
    CUgraphExec exec;
};

// Where arrays lie in the arena, alike on all ranks.
struct layout {
    size_t input, residual, gamma, slots;             // offsets
    size_t out, residual_out, norm_out, block_scales; // within a slot
    size_t slot_bytes, norm_bytes;
    size_t larger; // in a slot, too: where a reducescatter in place works, of which the output is but a part
};

struct place {
    struct device *device;
    struct cell *cell;
    enum mode mode;
    struct layout layout;
    CUdeviceptr base;
    int slots;
    bool is_amid; // the last sample's results are amid the larger buffer
    CUdeviceptr hashes;
    void *norm;                // of a slot, for the check
    bool tells_norm, has_norm; // the next sample; the last one
    uint64_t known_hashes[MAX_SLOTS];
    bool hashes_are_there, hashes_are_known; // on the GPU; here
    struct grid grid_of_floor;
    uint64_t begun_ns;    // when the host began to enqueue what is timed
    bool is_late;         // it took longer than the delay
    bool was_never_early; // on some rank, of all tries at what was timed last
    bool has_no_slope;    // what was timed last: no try at it gave a time above zero on all ranks
    int graph_count;
    struct graph graphs[MOST_GRAPHS];
    struct place *next; // of those that are open
};

// ---- where things are ---------------------------------------------------------------------------------

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_quantised(enum fusion fusion) {
    return fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8 || fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4;
}

static size_t row_bytes(const struct cell *cell) {
    return cell->shape.hidden_size * dtype_sizes_bytes[cell->shape.dtype];
}

// Of a norm that is kept for the check.
static size_t norm_bytes(const struct shape *shape) {
    size_t elements = shape->num_tokens * shape->hidden_size;
    return is_quantised(shape->fusion) ? elements * dtype_sizes_bytes[shape->dtype] : 0;
}

// Bytes that all calls read together, where one reads `elements`.
static size_t read_bytes(const struct cell *cell, size_t elements) {
    return (elements + (cell->shifts - 1) * cell->stride) * dtype_sizes_bytes[cell->shape.dtype];
}

static bool anybody_works_in_place(void) {
    for (int i = 0; i < cuda_candidate_count; i++) {
        if (plugins_is_in_place(&cuda_candidates[i])) return true;
    }
    return false;
}

static size_t input_bytes(const struct cell *cell) {
    return cell->input_elements * dtype_sizes_bytes[cell->shape.dtype];
}

static struct layout layout_of(const struct cell *cell) {
    bool fused = cell->shape.fusion != FUSION_NONE;
    size_t rows = aligned(read_bytes(cell, cell->input_elements));
    bool has_larger = cell->shape.op == OP_REDUCESCATTER && anybody_works_in_place();
    struct layout layout = {.residual = rows};
    layout.norm_bytes = norm_bytes(&cell->shape);
    layout.gamma = layout.residual + (fused ? rows : 0);
    layout.slots = layout.gamma + (fused ? aligned(row_bytes(cell)) : 0);
    layout.larger = aligned(cell->out_bytes > 0 ? cell->out_bytes : 1); // no two slots in one place
    layout.residual_out = layout.larger + (has_larger ? aligned(input_bytes(cell)) : 0);
    layout.norm_out = layout.residual_out + aligned(cell->residual_out_bytes);
    layout.block_scales = layout.norm_out + aligned(layout.norm_bytes);
    layout.slot_bytes = layout.block_scales + aligned(cell->block_scales_bytes);
    return layout;
}

static CUdeviceptr slot_address(const struct place *place, int slot) {
    return place->base + place->layout.slots + (size_t)slot * place->layout.slot_bytes;
}

static void *pointer(CUdeviceptr address) {
    return (void *)(uintptr_t)address;
}

static bool is_chain(enum mode mode) {
    return mode == MODE_GRAPH || mode == MODE_COLD_GRAPH;
}

// The slots of a sample's long chain, and of its short one: the rest, one at least.
static struct span long_chain(const struct place *place) {
    int fewer = place->slots / (SHORT_CHAIN + 1);
    return (struct span){0, place->slots - (fewer > 0 ? fewer : 1)};
}

static struct span short_chain(const struct place *place) {
    int calls = long_chain(place).calls;
    return (struct span){calls, place->slots - calls};
}

// Slots without which there is nothing to time: of two chains that differ, where there are chains.
static int least_slots(enum mode mode) {
    return is_chain(mode) ? 3 : 1;
}

// Where a candidate works in place alone, that is: of an allreduce with its epilogue apart, where the sum is
// sought; else where the output goes, or what that is a part of.
static void put_in_place(const struct place *place, const struct candidate *candidate, struct call *call,
                         int slot) {
    bool is_part = call->op == OP_REDUCESCATTER;
    void *larger = pointer(slot_address(place, slot) + place->layout.larger);
    if (plugins_has_epilogue_apart(candidate))
        call->input = call->residual_out;
    else
        call_put_in_place(call, place->device->group->rank, is_part ? larger : call->out);
}

struct call place_call(void *of, const struct candidate *candidate, size_t shift, int slot) {
    struct place *place = of;
    const struct layout *layout = &place->layout;
    struct call call = cell_call(place->cell, shift);
    size_t offset = shift * place->cell->stride * dtype_sizes_bytes[call.dtype];
    CUdeviceptr results = slot_address(place, slot);
    bool fused = call.fusion != FUSION_NONE;
    call.input = pointer(place->base + layout->input + offset);
    call.residual = fused ? pointer(place->base + layout->residual + offset) : NULL;
    call.gamma = fused ? pointer(place->base + layout->gamma) : NULL;
    call.captured = is_chain(place->mode);
    call.out = pointer(results + layout->out);
    call.residual_out = fused ? pointer(results + layout->residual_out) : NULL;
    call.norm_out = layout->norm_bytes > 0 ? pointer(results + layout->norm_out) : NULL;
    call.tells_norm = call.norm_out != NULL && place->tells_norm;
    call.block_scales = place->cell->block_scales_bytes > 0 ? pointer(results + layout->block_scales) : NULL;
    if (candidate != NULL && plugins_is_in_place(candidate)) put_in_place(place, candidate, &call, slot);
    return call;
}

// ---- open and close -----------------------------------------------------------------------------------

static bool upload(struct place *place, CUdeviceptr to, const void *from, size_t bytes) {
    struct device *device = place->device;
    if (from == NULL || bytes == 0) return true;
    return device_ok(device, device->driver->cuMemcpyHtoDAsync(to, from, bytes, device->stream), "a copy") &&
           device_finish(device);
}

static size_t bytes_of(const struct place *place, int slots) {
    return place->layout.slots + (size_t)slots * place->layout.slot_bytes;
}

// Gives the place its part of the arena, behind those that are open.
static bool find_room(struct place *place, char reason[REASON_SIZE]) {
    const struct device *device = place->device;
    size_t room = device->arena.bytes - device->arena_taken;
    int least = least_slots(place->mode);
    if (bytes_of(place, least) > room) {
        snprintf(reason, REASON_SIZE,
                 "%s need %zu KiB, above the %zu there are; a larger --arena would be right",
                 least > 1 ? "the data of two chains of calls" : "its data",
                 (bytes_of(place, least) + 1023) >> 10, room >> 10);
        return false;
    }
    size_t fitting = (room - place->layout.slots) / place->layout.slot_bytes;
    place->base = device->arena.of[device->group->rank] + device->arena_taken;
    place->slots = !is_chain(place->mode) ? 1 : fitting < MAX_SLOTS ? (int)fitting : MAX_SLOTS;
    return true;
}

static bool make_place(struct place *place, char reason[REASON_SIZE]) {
    const struct cell *cell = place->cell;
    if (!find_room(place, reason)) return false;
    if (place->layout.norm_bytes > 0) {
        place->norm = malloc(place->layout.norm_bytes);
        if (place->norm == NULL) {
            snprintf(reason, REASON_SIZE, "out of memory");
            return false;
        }
    }
    const struct cuda_driver *driver = place->device->driver;
    CUresult result = driver->cuMemAlloc(&place->hashes, MAX_SLOTS * sizeof(uint64_t));
    if (!driver_ok(driver, result, "taking memory", reason, REASON_SIZE)) return false;
    bool uploaded = upload(place, place->base + place->layout.input, cell->input,
                           read_bytes(cell, cell->input_elements)) &&
                    upload(place, place->base + place->layout.residual, cell->residual,
                           read_bytes(cell, cell->input_elements)) &&
                    upload(place, place->base + place->layout.gamma, cell->gamma, row_bytes(cell));
    if (!uploaded) snprintf(reason, REASON_SIZE, "%s", group_failure(place->device->group));
    return uploaded;
}

// The next place lies behind this one on all ranks alike, whose results may differ in size.
int place_open(struct group *group, struct cell *cell, enum mode mode, void **place_made,
               char reason[REASON_SIZE]) {
    struct device *device = device_of(group);
    struct place *place = calloc(1, sizeof *place);
    bool made = false;
    double taken = 0;
    if (place == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
    } else {
        *place = (struct place){.device = device, .cell = cell, .mode = mode, .layout = layout_of(cell)};
        *place_made = place;
        place->next = device->places;
        device->places = place;
        made = make_place(place, reason);
    }
    long slots = group_min(group, made ? place->slots : MAX_SLOTS);
    if (made) {
        place->slots = (int)slots; // chains are as long on all ranks
        taken = (double)bytes_of(place, place->slots);
    }
    device->arena_taken += (size_t)group_max(group, taken);
    return made ? 0 : -1;
}

static void forget_graphs(struct place *place) {
    for (int i = 0; i < place->graph_count; i++)
        place->device->driver->cuGraphExecDestroy(place->graphs[i].exec);
    place->graph_count = 0;
}

void place_forget_graphs(struct device *device) {
    for (struct place *place = device->places; place != NULL; place = place->next) forget_graphs(place);
}

// Where a GPU may hang, memory is not given back, which would wait for it; the process ends.
void place_close(void *of) {
    struct place *place = of, **at = &place->device->places;
    const struct cuda_driver *driver = place->device->driver;
    forget_graphs(place);
    if (place->hashes != 0 && group_failure(place->device->group) == NULL) driver->cuMemFree(place->hashes);
    place->cell->norm_out = NULL;
    while (*at != place) at = &(*at)->next;
    *at = place->next;
    if (place->device->places == NULL) place->device->arena_taken = 0;
    free(place->norm);
    free(place);
}

size_t place_bytes(const struct shape *shape) {
    return sizeof(struct place) + norm_bytes(shape);
}

int place_slots(const void *of) {
    return ((const struct place *)of)->slots;
}

int place_poison(void *of) {
    struct place *place = of;
    struct device *device = place->device;
    size_t bytes = (size_t)place->slots * place->layout.slot_bytes;
    place->hashes_are_there = place->hashes_are_known = false;
    place->tells_norm = true; // what comes is verified in full
    CUresult result = device->driver->cuMemsetD8Async(slot_address(place, 0), POISON, bytes, device->stream);
    return device_ok(device, result, "clearing results") && device_finish(device) ? 0 : -1;
}

int place_finish(void *of) {
    struct place *place = of;
    if (device_enqueues(place->device) && !device_finish(place->device)) return -1;
    place->hashes_are_there = place->hashes_are_known = place->tells_norm = place->has_norm = false;
    return group_barrier(place->device->group) ? 0 : -1;
}

// ---- one call -----------------------------------------------------------------------------------------

// As many blocks as the GPU holds, for all ranks that share it, or as there is something for.
static struct grid grid_of_copy(const struct device *device, size_t words) {
    unsigned ranks = device_is_joint(device) ? (unsigned)device->group->size : 1;
    size_t useful = words == 0 ? 1 : (words + COPY_THREADS - 1) / COPY_THREADS; // no launch is of no blocks
    size_t blocks = (unsigned)(device->multiprocessors * COPY_BLOCKS_PER_MULTIPROCESSOR) / ranks;
    if (blocks == 0) blocks = 1;
    return (struct grid){
        .blocks = (unsigned)(useful < blocks ? useful : blocks), .ranks = ranks, .threads = COPY_THREADS};
}

// Bytes that every way to do the call has to read, and to write: of the smaller buffer.
static size_t least_bytes(const struct call *call) {
    const struct traffic *traffic = call->traffic;
    if (traffic == NULL) return call_bytes(call);
    size_t sent = traffic->send_elements, received = traffic->receive_elements;
    return (sent < received ? sent : received) * dtype_sizes_bytes[call->dtype];
}

// Where the 16 bytes begin that `pointer` is in: data sets of odd rows begin anywhere, and threads read whole
// ones.
static const void *whole_words(const void *pointer) {
    return (const void *)((uintptr_t)pointer & ~(uintptr_t)15);
}

// What any way to do the call has to do: read the input, write as much.
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

// Says what this rank's calls are, where rank 0 makes them.
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

// ---- checks in the stream -----------------------------------------------------------------------------

// Adds an array to the hash of a slot, on the stream of `by`; what fills up its last 16 bytes is always the
// same.
static bool hash_more(const struct place *place, struct device *by, int slot, CUdeviceptr array, size_t bytes,
                      uint64_t salt) {
    if (bytes == 0) return true;
    struct ArrayParameters parameters = {.words = (bytes + 15) / 16, .salt = salt << 40};
    parameters.from[0] = pointer(array);
    parameters.to[0] = pointer(place->hashes + (size_t)slot * sizeof(uint64_t));
    uint64_t blocks = (parameters.words + HASH_THREADS - 1) / HASH_THREADS;
    struct grid grid = {
        .blocks = blocks < HASH_BLOCKS ? (unsigned)blocks : HASH_BLOCKS, .ranks = 1, .threads = HASH_THREADS};
    return device_launch(by, device_kernel(by, "gentables_hash"), grid, &parameters, sizeof parameters);
}

// Brings results to where they are looked for.
static bool take_from_amid(const struct place *place, int slot) {
    const struct cell *cell = place->cell;
    const struct device *device = place->device;
    size_t at = cell->traffic.send_at[cell->rank] * dtype_sizes_bytes[cell->shape.dtype];
    CUdeviceptr results = slot_address(place, slot);
    if (!place->is_amid) return true;
    CUresult result = device->driver->cuMemcpyDtoDAsync(
        results + place->layout.out, results + place->layout.larger + at, cell->out_bytes, device->stream);
    return device_ok(place->device, result, "a copy");
}

static struct span all_slots(const struct place *place) {
    return (struct span){0, place->slots};
}

// Has these slots of a place hashed, in order behind what is in the stream of `by`.
static bool enqueue_hashes(const struct place *place, struct device *by, struct span span) {
    const struct cell *cell = place->cell;
    size_t each = sizeof(uint64_t), bytes = (size_t)span.calls * each;
    CUdeviceptr hashes = place->hashes + (size_t)span.first * each;
    CUresult result = by->driver->cuMemsetD8Async(hashes, 0, bytes, by->stream);
    bool right = device_ok(by, result, "a hash");
    for (int slot = span.first; right && slot < span.first + span.calls; slot++) {
        CUdeviceptr at = slot_address(place, slot);
        right = take_from_amid(place, slot) &&
                hash_more(place, by, slot, at + place->layout.out, cell->out_bytes, 1) &&
                hash_more(place, by, slot, at + place->layout.residual_out, cell->residual_out_bytes, 2) &&
                hash_more(place, by, slot, at + place->layout.block_scales, cell->block_scales_bytes, 3);
    }
    return right;
}

// Whether results are hashed right behind what is timed: those of a candidate's calls.
static bool is_hashed_behind(const struct work *work) {
    return work->candidate != NULL;
}

// Poisons the array at `offset` of these slots, or its ends.
static bool poison_array(const struct place *place, struct device *by, struct span span, size_t offset,
                         size_t bytes) {
    const struct cuda_driver *driver = by->driver;
    size_t width = bytes < POISONED_BYTES ? bytes : POISONED_BYTES, rest = bytes - width;
    size_t slots = (size_t)span.calls;
    size_t pitch = slots > 1 ? place->layout.slot_bytes : width; // of one slot it is none, but is limited
    CUdeviceptr at = slot_address(place, span.first) + offset;
    CUresult result = CUDA_SUCCESS;
    if (width > 0) result = driver->cuMemsetD2D8Async(at, pitch, POISON, width, slots, by->stream);
    if (result == CUDA_SUCCESS && rest > 0)
        result = driver->cuMemsetD2D8Async(at + rest, pitch, POISON, width, slots, by->stream);
    return device_ok(by, result, "clearing results");
}

static bool poison_slots(const struct place *place, struct device *by, struct span span) {
    const struct cell *cell = place->cell;
    return poison_array(place, by, span, place->layout.out, cell->out_bytes) &&
           poison_array(place, by, span, place->layout.residual_out, cell->residual_out_bytes) &&
           poison_array(place, by, span, place->layout.block_scales, cell->block_scales_bytes);
}

// Does this to the places whose calls this rank enqueues: its own, or, in one launch for all, everybody's.
static bool each_place(struct place *place, struct span span,
                       bool (*act)(const struct place *place, struct device *by, struct span span)) {
    struct device *by = place->device;
    if (by->joint == NULL) return act(place, by, span);
    for (int rank = 0; rank < by->group->size; rank++) {
        if (!act(by->joint->places[rank], by, span)) return false;
    }
    return true;
}

// ---- times -------------------------------------------------------------------------------------------

// Leaves nothing of the data in the caches.
static bool flush(struct device *device) {
    CUresult result = device->driver->cuMemsetD8Async(device->flush, 0, 2 * device->l2_bytes, device->stream);
    return device_ok(device, result, "a flush");
}

static bool is_in_place(const struct work *work) {
    return work->candidate != NULL && plugins_is_in_place(work->candidate);
}

// Puts the inputs of calls in place.
static bool put_inputs(struct place *place, const struct work *work, size_t shift, struct span span) {
    struct device *device = place->device;
    for (int slot = span.first; slot < span.first + span.calls; slot++) {
        size_t of = (shift + (size_t)slot) % place->cell->shifts;
        struct call from = place_call(place, NULL, of, slot),
                    to = place_call(place, work->candidate, of, slot);
        CUresult result = device->driver->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to.input,
                                                            (CUdeviceptr)(uintptr_t)from.input,
                                                            input_bytes(place->cell), device->stream);
        if (!device_ok(device, result, "a copy")) return false;
    }
    return true;
}

// Holds the stream, poisons results that are hashed afterwards, puts inputs in place, flushes where asked to,
// has ranks meet, and marks the beginning.
static bool begin(struct place *place, const struct work *work, size_t shift, struct span span) {
    struct device *device = place->device;
    const struct cuda_driver *driver = device->driver;
    place->begun_ns = clock_ns();
    if (!device_delay(device, device->delay_ns)) return false;
    if (is_hashed_behind(work) && !each_place(place, span, poison_slots)) return false;
    if (is_in_place(work) && !put_inputs(place, work, shift, span)) return false;
    if (place->mode == MODE_COLD && !flush(device)) return false;
    if (device->reach != REACH_NONE && device->group->size > 1 && !device_barrier(device, 1)) return false;
    return device_ok(device, driver->cuEventRecord(device->before, device->stream), "an event");
}

// Marks the end, has results hashed behind it, waits, and says how long it took.
static bool end(struct place *place, const struct work *work, struct span span, double *time_us) {
    struct device *device = place->device;
    const struct cuda_driver *driver = device->driver;
    float ms = 0;
    if (!device_ok(device, driver->cuEventRecord(device->after, device->stream), "an event")) return false;
    place->is_late = clock_ns() - place->begun_ns > device->delay_ns;
    if (is_hashed_behind(work) && !each_place(place, span, enqueue_hashes)) return false;
    if (!device_ok(device, driver->cuEventRecord(device->checked, device->stream), "an event") ||
        !device_wait(device, device->checked))
        return false;
    CUresult result = driver->cuEventElapsedTime(&ms, device->before, device->after);
    *time_us = (double)ms * 1000;
    return device_ok(device, result, "a time");
}

// Times the calls of a span once, of which that in the first slot of all has data set `shift`. All ranks have
// published them.
typedef bool timing(struct place *place, const struct work *work, size_t shift, struct span span,
                    double *time_us);

// Collective. Times until no host was late, or has given that up; a host that was held up once needs no
// longer delay.
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
    return publish(place, shift) && time_in_time(place, time_call, work, shift, all_slots(place), time_us);
}

// ---- graphs -----------------------------------------------------------------------------------------------

static bool same_work(const struct work *a, const struct work *b) {
    return a->candidate == b->candidate && a->state == b->state && a->empty == b->empty &&
           a->tells_norm == b->tells_norm && a->is_nothing == b->is_nothing;
}

// Captures a chain, whose calls other ranks have published.
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

// The chain in these slots, captured once; NULL: it cannot be.
static struct graph *find_graph(struct place *place, const struct work *work, size_t shift,
                                struct span span) {
    for (int i = 0; i < place->graph_count; i++) {
        struct graph *graph = &place->graphs[i];
        if (same_work(&graph->work, work) && graph->shift == shift && graph->span.first == span.first)
            return graph;
    }
    if (place->graph_count == MOST_GRAPHS) forget_graphs(place); // which come again
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
        graph = find_graph(place, work, shift, span); // made while no rank's kernels wait for another's
        if (graph == NULL) return false;
    }
    if (!group_barrier(device->group)) return false;
    if (!device_enqueues(device)) return true;
    if (!begin(place, work, shift, span)) return false;
    if (!device_ok(device, device->driver->cuGraphLaunch(graph->exec, device->stream), "launching a graph"))
        return false;
    return end(place, work, span, time_us);
}

// One call of a long chain, by what it takes longer than a short one.
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

// Collective. `reason`: it is no time of the GPUs.
static bool time_work(struct place *place, const struct work *work, size_t shift, double *time_us,
                      char reason[REASON_SIZE]) {
    struct device *device = place->device;
    place->is_amid = is_in_place(work) && place->cell->shape.op == OP_REDUCESCATTER;
    place->hashes_are_there = place->hashes_are_known = place->was_never_early = false;
    place->has_no_slope = false;
    bool timed = is_chain(place->mode) ? time_graphs(place, work, shift, time_us)
                                       : time_eager(place, work, shift, time_us);
    device->is_published = false;
    place->hashes_are_there = is_hashed_behind(work);
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
    struct work work = {.candidate = candidate, .state = state, .tells_norm = place->tells_norm};
    double time_us;
    if (!time_work(place, &work, shift, &time_us, reason)) return -1;
    place->has_norm = place->tells_norm;
    place->tells_norm = false;
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
    // The next floor is of another shape, and its graphs are others.
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

// ---- results -------------------------------------------------------------------------------------------

static bool download(struct place *place, void *to, CUdeviceptr from, size_t bytes) {
    struct device *device = place->device;
    if (to == NULL || bytes == 0) return true;
    return device_ok(device, device->driver->cuMemcpyDtoHAsync(to, from, bytes, device->stream), "a copy");
}

int place_fetch(void *of, int slot) {
    struct place *place = of;
    struct cell *cell = place->cell;
    CUdeviceptr results = slot_address(place, slot);
    cell->norm_out = place->has_norm ? place->norm : NULL;
    bool fetched =
        take_from_amid(place, slot) &&
        download(place, cell->out, results + place->layout.out, cell->out_bytes) &&
        download(place, place->norm, results + place->layout.norm_out, place->layout.norm_bytes) &&
        download(place, cell->residual_out, results + place->layout.residual_out, cell->residual_out_bytes) &&
        download(place, cell->block_scales, results + place->layout.block_scales, cell->block_scales_bytes);
    return fetched && device_finish(place->device) ? 0 : -1;
}

static bool fetch_hashes(struct place *place) {
    size_t bytes = (size_t)place->slots * sizeof(uint64_t);
    return download(place, place->known_hashes, place->hashes, bytes) && device_finish(place->device);
}

// Of all slots at once, for each fetch costs a wait.
uint64_t place_hash(void *of, int slot) {
    struct place *place = of;
    if (!place->hashes_are_known) {
        bool there = place->hashes_are_there || enqueue_hashes(place, place->device, all_slots(place));
        place->hashes_are_known = there && fetch_hashes(place);
    }
    return place->known_hashes[slot];
}

bool place_stays(void *of, int slot) {
    struct place *place = of;
    uint64_t before[MAX_SLOTS];
    bool are_of_the_call = place->hashes_are_there;
    place_hash(place, slot);
    if (!are_of_the_call) return true;
    memcpy(before, place->known_hashes, sizeof before);
    bool same = enqueue_hashes(place, place->device, all_slots(place)) && fetch_hashes(place) &&
                place->known_hashes[slot] == before[slot];
    memcpy(place->known_hashes, before, sizeof before);
    return same;
}
