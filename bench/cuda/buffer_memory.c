// Data of cells on a GPU (see cell_buffers.h): the layout of their arrays, copies to and from the GPU, and
// hashes and poison in the stream.
#include "cell_buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer_memory.h"
#include "calls/in_place.h"
#include "candidate.h"
#include "elements/fusion.h"
#include "plugin_loader/plugin_limits.h"
#include "plugin_loader/plugins.h"

enum {
    ALIGNMENT = 4096, // of arrays, as NCCL's windows require
    HASH_BLOCKS = 128,
    HASH_THREADS = 256,
    POISON = 0xff, // in every byte: no right result consists of it
    POISONED_BYTES =
        32 << 10, // of larger arrays, at both ends: enough to destroy results that came too early
};

// ---- layout -------------------------------------------------------------------------------------------

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t row_bytes(const struct cell *cell) {
    return cell->shape.hidden_size * dtype_sizes_bytes[cell->shape.dtype];
}

// Bytes of a norm that is kept for the check.
static size_t norm_bytes(const struct shape *shape) {
    size_t elements = shape->num_tokens * shape->hidden_size;
    return fusion_has_codes(shape->fusion) ? elements * dtype_sizes_bytes[shape->dtype] : 0;
}

// Bytes that all calls read together, if one call reads `elements`.
static size_t read_bytes(const struct cell *cell, size_t elements) {
    return (elements + (cell->shifts - 1) * cell->stride) * dtype_sizes_bytes[cell->shape.dtype];
}

static bool anybody_works_in_place(void) {
    for (int i = 0; i < cuda_candidate_count; i++) {
        if (plugins_is_in_place(&cuda_candidates[i])) return true;
    }
    return false;
}

static struct layout layout_of(const struct cell *cell) {
    bool fused = cell->shape.fusion != FUSION_NONE;
    size_t rows = aligned(read_bytes(cell, cell->input_elements));
    bool has_larger = cell->shape.op == OP_REDUCESCATTER && anybody_works_in_place();
    struct layout layout = {.residual = rows};
    layout.norm_bytes = norm_bytes(&cell->shape);
    layout.gamma = layout.residual + (fused ? rows : 0);
    layout.slots = layout.gamma + (fused ? aligned(row_bytes(cell)) : 0);
    layout.larger = aligned(cell->out_bytes > 0 ? cell->out_bytes : 1); // no two slots have the same address
    layout.residual_out = layout.larger + (has_larger ? aligned(place_input_bytes(cell)) : 0);
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

// The minimum number of slots: for chains, two of different lengths.
static int least_slots(enum mode mode) {
    return place_is_chain(mode) ? 3 : 1;
}

// For candidates that work in place alone: the input is at the sum's address, if the epilogue is apart; else
// at the output's address, or in the larger buffer that the output is a part of.
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
    call.captured = place_is_chain(place->mode);
    call.out = pointer(results + layout->out);
    call.residual_out = fused ? pointer(results + layout->residual_out) : NULL;
    call.norm_out = layout->norm_bytes > 0 ? pointer(results + layout->norm_out) : NULL;
    call.writes_norm = call.norm_out != NULL && place->writes_norm;
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

// Gives the place its part of the arena, after the open places.
static bool find_room(struct place *place, char reason[REASON_SIZE]) {
    const struct device *device = place->device;
    size_t room = device->arena.bytes - device->arena_taken;
    int least = least_slots(place->mode);
    if (bytes_of(place, least) > room) {
        snprintf(reason, REASON_SIZE, "%s need %zu KiB, and %zu are free; use a larger --arena",
                 least > 1 ? "the data of two chains of calls" : "its data",
                 (bytes_of(place, least) + 1023) >> 10, room >> 10);
        return false;
    }
    size_t fitting = (room - place->layout.slots) / place->layout.slot_bytes;
    place->base = device->arena.of[device->group->rank] + device->arena_taken;
    place->slots = !place_is_chain(place->mode) ? 1 : fitting < MAX_SLOTS ? (int)fitting : MAX_SLOTS;
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

// The next place begins at the same offset on all ranks, though their results may differ in size.
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
        place->slots = (int)slots; // chains have the same length on all ranks
        taken = (double)bytes_of(place, place->slots);
    }
    device->arena_taken += (size_t)group_max(group, taken);
    return made ? 0 : -1;
}

void place_drop_graphs(struct place *place) {
    for (int i = 0; i < place->graph_count; i++)
        place->device->driver->cuGraphExecDestroy(place->graphs[i].exec);
    place->graph_count = 0;
}

void place_forget_graphs(struct device *device) {
    for (struct place *place = device->places; place != NULL; place = place->next) place_drop_graphs(place);
}

// If the GPU may hang, memory is not freed, because that would wait for the GPU; the process ends.
void place_close(void *of) {
    struct place *place = of, **at = &place->device->places;
    const struct cuda_driver *driver = place->device->driver;
    place_drop_graphs(place);
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
    place->hashes_are_enqueued = place->hashes_are_known = false;
    place->writes_norm = true; // the next results are verified in full
    CUresult result = device->driver->cuMemsetD8Async(slot_address(place, 0), POISON, bytes, device->stream);
    return device_ok(device, result, "clearing results") && device_finish(device) ? 0 : -1;
}

int place_finish(void *of) {
    struct place *place = of;
    if (device_enqueues(place->device) && !device_finish(place->device)) return -1;
    place->hashes_are_enqueued = place->hashes_are_known = place->writes_norm = place->has_norm = false;
    return group_barrier(place->device->group) ? 0 : -1;
}

// ---- checks in the stream -----------------------------------------------------------------------------

// Adds an array to the hash of a slot, on the stream of `by`; the padding of its last 16 bytes never changes.
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

// Copies results that are inside the larger buffer to the output's address.
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

bool place_enqueue_hashes(const struct place *place, struct device *by, struct span span) {
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

// Poisons the array at `offset` of these slots, or both its ends.
static bool poison_array(const struct place *place, struct device *by, struct span span, size_t offset,
                         size_t bytes) {
    const struct cuda_driver *driver = by->driver;
    size_t width = bytes < POISONED_BYTES ? bytes : POISONED_BYTES, rest = bytes - width;
    size_t slots = (size_t)span.calls;
    size_t pitch = slots > 1 ? place->layout.slot_bytes : width; // of one slot it is unused, but has a limit
    CUdeviceptr at = slot_address(place, span.first) + offset;
    CUresult result = CUDA_SUCCESS;
    if (width > 0) result = driver->cuMemsetD2D8Async(at, pitch, POISON, width, slots, by->stream);
    if (result == CUDA_SUCCESS && rest > 0)
        result = driver->cuMemsetD2D8Async(at + rest, pitch, POISON, width, slots, by->stream);
    return device_ok(by, result, "clearing results");
}

bool place_poison_slots(const struct place *place, struct device *by, struct span span) {
    const struct cell *cell = place->cell;
    return poison_array(place, by, span, place->layout.out, cell->out_bytes) &&
           poison_array(place, by, span, place->layout.residual_out, cell->residual_out_bytes) &&
           poison_array(place, by, span, place->layout.block_scales, cell->block_scales_bytes);
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

// Fetches the hashes of all slots at once, because each fetch waits for the GPU.
uint64_t place_hash(void *of, int slot) {
    struct place *place = of;
    if (!place->hashes_are_known) {
        bool there =
            place->hashes_are_enqueued || place_enqueue_hashes(place, place->device, place_all_slots(place));
        place->hashes_are_known = there && fetch_hashes(place);
    }
    return place->known_hashes[slot];
}

bool place_stays(void *of, int slot) {
    struct place *place = of;
    uint64_t before[MAX_SLOTS];
    bool are_of_the_call = place->hashes_are_enqueued;
    place_hash(place, slot);
    if (!are_of_the_call) return true;
    memcpy(before, place->known_hashes, sizeof before);
    bool same = place_enqueue_hashes(place, place->device, place_all_slots(place)) && fetch_hashes(place) &&
                place->known_hashes[slot] == before[slot];
    memcpy(place->known_hashes, before, sizeof before);
    return same;
}
