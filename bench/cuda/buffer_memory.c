// Data of cells on a GPU (see cell_buffers.h): the offsets of their arrays, copies to and from the GPU, and
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
    ALIGNMENT = 4096,  // of arrays, as NCCL's windows require
    HASH_BLOCKS = 512, // of all slots
    HASH_THREADS = 256,
    WARP_THREADS = 32,
    POISON = 0xff, // in every byte: no right result consists of it
    POISONED_BYTES =
        32 << 10, // of larger arrays, at both ends: enough to destroy results that came too early
};

// ---- offsets ------------------------------------------------------------------------------------------

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
    return (elements + (cell->data_sets - 1) * cell->stride) * dtype_sizes_bytes[cell->shape.dtype];
}

static bool any_candidate_works_in_place(void) {
    for (int i = 0; i < cuda_candidate_count; i++) {
        if (plugins_is_in_place(&cuda_candidates[i])) return true;
    }
    return false;
}

static struct buffer_offsets offsets_of(const struct cell *cell) {
    bool fused = cell->shape.fusion != FUSION_NONE;
    size_t rows = aligned(read_bytes(cell, cell->input_elements));
    bool has_larger = cell->shape.op == OP_REDUCESCATTER && any_candidate_works_in_place();
    struct buffer_offsets offsets = {.residual = rows};
    offsets.norm_bytes = norm_bytes(&cell->shape);
    offsets.gamma = offsets.residual + (fused ? rows : 0);
    offsets.slots = offsets.gamma + (fused ? aligned(row_bytes(cell)) : 0);
    offsets.larger = aligned(cell->out_bytes > 0 ? cell->out_bytes : 1); // no two slots have the same address
    offsets.residual_out = offsets.larger + (has_larger ? aligned(cell_input_bytes(cell)) : 0);
    offsets.norm_out = offsets.residual_out + aligned(cell->residual_out_bytes);
    offsets.block_scales = offsets.norm_out + aligned(offsets.norm_bytes);
    offsets.slot_bytes = offsets.block_scales + aligned(cell->block_scales_bytes);
    return offsets;
}

static CUdeviceptr slot_address(const struct cell_buffers *buffers, int slot) {
    return buffers->base + buffers->offsets.slots + (size_t)slot * buffers->offsets.slot_bytes;
}

static void *pointer(CUdeviceptr address) {
    return (void *)(uintptr_t)address;
}

// The minimum number of slots: for chains, two of different lengths.
static int least_slots(enum mode mode) {
    return mode_is_chain(mode) ? 3 : 1;
}

// For candidates that work only in place. If the epilogue is separate, the input is at the sum's address;
// else at the output's address, or in the larger buffer of which the output is a part.
static void put_in_place(const struct cell_buffers *buffers, const struct candidate *candidate,
                         struct call *call, int slot) {
    bool is_part = call->op == OP_REDUCESCATTER;
    void *larger = pointer(slot_address(buffers, slot) + buffers->offsets.larger);
    if (plugins_has_epilogue_apart(candidate))
        call->input = call->residual_out;
    else
        call_put_in_place(call, buffers->device->group->rank, is_part ? larger : call->out);
}

struct call buffers_call(void *of, const struct candidate *candidate, size_t data_set, int slot) {
    struct cell_buffers *buffers = of;
    const struct buffer_offsets *offsets = &buffers->offsets;
    struct call call = cell_call(buffers->cell, data_set);
    size_t offset = data_set * buffers->cell->stride * dtype_sizes_bytes[call.dtype];
    CUdeviceptr results = slot_address(buffers, slot);
    bool fused = call.fusion != FUSION_NONE;
    call.input = pointer(buffers->base + offsets->input + offset);
    call.residual = fused ? pointer(buffers->base + offsets->residual + offset) : NULL;
    call.gamma = fused ? pointer(buffers->base + offsets->gamma) : NULL;
    call.captured = mode_is_chain(buffers->mode);
    call.out = pointer(results + offsets->out);
    call.residual_out = fused ? pointer(results + offsets->residual_out) : NULL;
    call.norm_out = offsets->norm_bytes > 0 ? pointer(results + offsets->norm_out) : NULL;
    call.writes_norm = call.norm_out != NULL && buffers->writes_norm;
    call.block_scales =
        buffers->cell->block_scales_bytes > 0 ? pointer(results + offsets->block_scales) : NULL;
    if (candidate != NULL && plugins_is_in_place(candidate)) put_in_place(buffers, candidate, &call, slot);
    return call;
}

// ---- open and close -----------------------------------------------------------------------------------

static bool upload(struct cell_buffers *buffers, CUdeviceptr to, const void *from, size_t bytes) {
    struct device *device = buffers->device;
    if (from == NULL || bytes == 0) return true;
    return device_ok(device, device->driver->cuMemcpyHtoDAsync(to, from, bytes, device->stream), "a copy") &&
           device_finish(device);
}

static size_t bytes_of(const struct cell_buffers *buffers, int slots) {
    return buffers->offsets.slots + (size_t)slots * buffers->offsets.slot_bytes;
}

// Takes a part of the arena, after those of the open buffers.
static bool take_arena(struct cell_buffers *buffers, char reason[REASON_SIZE]) {
    const struct device *device = buffers->device;
    size_t room = device->arena.bytes - device->arena_taken;
    int least = least_slots(buffers->mode);
    if (bytes_of(buffers, least) > room) {
        snprintf(reason, REASON_SIZE, "%s need %zu KiB, and %zu are free; use a larger --arena",
                 least > 1 ? "the data of two chains of calls" : "its data",
                 (bytes_of(buffers, least) + 1023) >> 10, room >> 10);
        return false;
    }
    size_t fitting = (room - buffers->offsets.slots) / buffers->offsets.slot_bytes;
    buffers->base = device->arena.of[device->group->rank] + device->arena_taken;
    buffers->slots = !mode_is_chain(buffers->mode) ? 1 : fitting < MAX_SLOTS ? (int)fitting : MAX_SLOTS;
    return true;
}

static bool fill_buffers(struct cell_buffers *buffers, char reason[REASON_SIZE]) {
    const struct cell *cell = buffers->cell;
    if (!take_arena(buffers, reason)) return false;
    if (buffers->offsets.norm_bytes > 0) {
        buffers->norm = malloc(buffers->offsets.norm_bytes);
        if (buffers->norm == NULL) {
            snprintf(reason, REASON_SIZE, "out of memory");
            return false;
        }
    }
    const struct cuda_driver *driver = buffers->device->driver;
    CUresult result = driver->cuMemAlloc(&buffers->hashes, MAX_SLOTS * sizeof(uint64_t));
    if (!driver_ok(driver, result, "taking memory", reason, REASON_SIZE)) return false;
    bool uploaded = upload(buffers, buffers->base + buffers->offsets.input, cell->input,
                           read_bytes(cell, cell->input_elements)) &&
                    upload(buffers, buffers->base + buffers->offsets.residual, cell->residual,
                           read_bytes(cell, cell->input_elements)) &&
                    upload(buffers, buffers->base + buffers->offsets.gamma, cell->gamma, row_bytes(cell));
    if (!uploaded) snprintf(reason, REASON_SIZE, "%s", group_failure(buffers->device->group));
    return uploaded;
}

// The next buffers begin at the same offset on all ranks, though their results may differ in size.
int buffers_open(struct group *group, struct cell *cell, enum mode mode, void **made_buffers,
                 char reason[REASON_SIZE]) {
    struct device *device = device_of(group);
    struct cell_buffers *buffers = calloc(1, sizeof *buffers);
    bool made = false;
    double taken = 0;
    if (buffers == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
    } else {
        *buffers =
            (struct cell_buffers){.device = device, .cell = cell, .mode = mode, .offsets = offsets_of(cell)};
        *made_buffers = buffers;
        buffers->next = device->open_buffers;
        device->open_buffers = buffers;
        made = fill_buffers(buffers, reason);
    }
    long slots = group_min(group, made ? buffers->slots : MAX_SLOTS);
    if (made) {
        buffers->slots = (int)slots; // chains have the same length on all ranks
        taken = (double)bytes_of(buffers, buffers->slots);
    }
    device->arena_taken += (size_t)group_max(group, taken);
    return made ? 0 : -1;
}

void buffers_drop_graphs(struct cell_buffers *buffers) {
    for (int i = 0; i < buffers->graph_count; i++)
        buffers->device->driver->cuGraphExecDestroy(buffers->graphs[i].exec);
    buffers->graph_count = 0;
}

void device_drop_graphs(struct device *device) {
    for (struct cell_buffers *buffers = device->open_buffers; buffers != NULL; buffers = buffers->next)
        buffers_drop_graphs(buffers);
}

// If the GPU may hang, memory is not freed, because that would wait for the GPU; the process ends.
void buffers_close(void *of) {
    struct cell_buffers *buffers = of, **at = &buffers->device->open_buffers;
    const struct cuda_driver *driver = buffers->device->driver;
    buffers_drop_graphs(buffers);
    if (buffers->hashes != 0 && group_failure(buffers->device->group) == NULL)
        driver->cuMemFree(buffers->hashes);
    buffers->cell->norm_out = NULL;
    while (*at != buffers) at = &(*at)->next;
    *at = buffers->next;
    if (buffers->device->open_buffers == NULL) buffers->device->arena_taken = 0;
    free(buffers->norm);
    free(buffers);
}

size_t buffer_bytes(const struct shape *shape) {
    return sizeof(struct cell_buffers) + norm_bytes(shape);
}

int buffers_slots(const void *of) {
    return ((const struct cell_buffers *)of)->slots;
}

int buffers_poison(void *of) {
    struct cell_buffers *buffers = of;
    struct device *device = buffers->device;
    size_t bytes = (size_t)buffers->slots * buffers->offsets.slot_bytes;
    buffers->hashes_are_enqueued = buffers->hashes_are_known = false;
    buffers->writes_norm = true; // the next results are verified in full
    CUresult result =
        device->driver->cuMemsetD8Async(slot_address(buffers, 0), POISON, bytes, device->stream);
    return device_ok(device, result, "clearing results") && device_finish(device) ? 0 : -1;
}

int buffers_finish(void *of) {
    struct cell_buffers *buffers = of;
    if (device_enqueues(buffers->device) && !device_finish(buffers->device)) return -1;
    buffers->hashes_are_enqueued = buffers->hashes_are_known = buffers->writes_norm = buffers->has_norm =
        false;
    return group_barrier(buffers->device->group) ? 0 : -1;
}

// ---- checks in the stream -----------------------------------------------------------------------------

static uint64_t divided_up(uint64_t number, uint64_t by) {
    return (number + by - 1) / by;
}

static uint64_t at_most(uint64_t number, uint64_t limit) {
    return number < limit ? number : limit;
}

// The launch of gentables_hash for `count` arrays of so many words of 16 bytes.
static struct grid grid_of_hashes(uint64_t count, uint64_t words) {
    uint64_t blocks_of_each = at_most(divided_up(words, HASH_THREADS), divided_up(HASH_BLOCKS, count));
    uint64_t threads = at_most(divided_up(words, WARP_THREADS) * WARP_THREADS, HASH_THREADS);
    return (struct grid){
        .blocks = (unsigned)(count * blocks_of_each), .ranks = 1, .threads = (unsigned)threads};
}

// Adds the array at `offset` of these slots to the slots' hashes, on the stream of `by`; the padding of its
// last 16 bytes never changes.
static bool hash_more(const struct cell_buffers *buffers, struct device *by, struct slot_range range,
                      size_t offset, size_t bytes, uint64_t salt) {
    if (bytes == 0 || range.calls == 0) return true;
    struct HashParameters parameters = {
        .arrays = pointer(slot_address(buffers, range.first) + offset),
        .hashes = pointer(buffers->hashes + (size_t)range.first * sizeof(uint64_t)),
        .count = (uint64_t)range.calls,
        .pitch = buffers->offsets.slot_bytes,
        .words = divided_up(bytes, 16),
        .salt = salt << 40,
    };
    struct grid grid = grid_of_hashes(parameters.count, parameters.words);
    return device_launch(by, device_kernel(by, "gentables_hash"), grid, &parameters, sizeof parameters);
}

// Copies results that are inside the larger buffer to the output's address.
static bool copy_from_larger(const struct cell_buffers *buffers, int slot) {
    const struct cell *cell = buffers->cell;
    const struct device *device = buffers->device;
    size_t at = cell->traffic.send_at[cell->rank] * dtype_sizes_bytes[cell->shape.dtype];
    CUdeviceptr results = slot_address(buffers, slot);
    if (!buffers->is_inside_larger) return true;
    CUresult result = device->driver->cuMemcpyDtoDAsync(results + buffers->offsets.out,
                                                        results + buffers->offsets.larger + at,
                                                        cell->out_bytes, device->stream);
    return device_ok(buffers->device, result, "a copy");
}

bool buffers_enqueue_hashes(const struct cell_buffers *buffers, struct device *by, struct slot_range range) {
    const struct cell *cell = buffers->cell;
    const struct buffer_offsets *offsets = &buffers->offsets;
    size_t each = sizeof(uint64_t), bytes = (size_t)range.calls * each;
    CUdeviceptr hashes = buffers->hashes + (size_t)range.first * each;
    CUresult result = by->driver->cuMemsetD8Async(hashes, 0, bytes, by->stream);
    bool right = device_ok(by, result, "a hash");
    for (int slot = range.first; right && slot < range.first + range.calls; slot++)
        right = copy_from_larger(buffers, slot);
    return right && hash_more(buffers, by, range, offsets->out, cell->out_bytes, 1) &&
           hash_more(buffers, by, range, offsets->residual_out, cell->residual_out_bytes, 2) &&
           hash_more(buffers, by, range, offsets->block_scales, cell->block_scales_bytes, 3);
}

// Poisons the array at `offset` of these slots, or both its ends.
static bool poison_array(const struct cell_buffers *buffers, struct device *by, struct slot_range range,
                         size_t offset, size_t bytes) {
    const struct cuda_driver *driver = by->driver;
    size_t width = bytes < POISONED_BYTES ? bytes : POISONED_BYTES, rest = bytes - width;
    size_t slots = (size_t)range.calls;
    size_t pitch =
        slots > 1 ? buffers->offsets.slot_bytes : width; // of one slot it is unused, but has a limit
    CUdeviceptr at = slot_address(buffers, range.first) + offset;
    CUresult result = CUDA_SUCCESS;
    if (width > 0) result = driver->cuMemsetD2D8Async(at, pitch, POISON, width, slots, by->stream);
    if (result == CUDA_SUCCESS && rest > 0)
        result = driver->cuMemsetD2D8Async(at + rest, pitch, POISON, width, slots, by->stream);
    return device_ok(by, result, "clearing results");
}

bool buffers_poison_slots(const struct cell_buffers *buffers, struct device *by, struct slot_range range) {
    const struct cell *cell = buffers->cell;
    return poison_array(buffers, by, range, buffers->offsets.out, cell->out_bytes) &&
           poison_array(buffers, by, range, buffers->offsets.residual_out, cell->residual_out_bytes) &&
           poison_array(buffers, by, range, buffers->offsets.block_scales, cell->block_scales_bytes);
}

// ---- results -------------------------------------------------------------------------------------------

static bool download(struct cell_buffers *buffers, void *to, CUdeviceptr from, size_t bytes) {
    struct device *device = buffers->device;
    if (to == NULL || bytes == 0) return true;
    return device_ok(device, device->driver->cuMemcpyDtoHAsync(to, from, bytes, device->stream), "a copy");
}

// Downloads a part of the array with `bytes` bytes at `offset` of a slot.
static bool download_part(struct cell_buffers *buffers, void *to, int slot, size_t offset, size_t bytes,
                          struct cell_part part) {
    if (to == NULL || bytes == 0) return true;
    size_t element_bits = 8 * bytes / buffers->cell->out_elements;
    size_t first = part.first * element_bits / 8, count = part.count * element_bits / 8;
    return download(buffers, (char *)to + first, slot_address(buffers, slot) + offset + first, count);
}

// Downloads all block scales, because those of a part are not consecutive.
int buffers_fetch(void *of, int slot, struct cell_part part) {
    struct cell_buffers *buffers = of;
    struct cell *cell = buffers->cell;
    const struct buffer_offsets *offsets = &buffers->offsets;
    cell->norm_out = buffers->has_norm ? buffers->norm : NULL;
    bool fetched =
        copy_from_larger(buffers, slot) &&
        download_part(buffers, cell->out, slot, offsets->out, cell->out_bytes, part) &&
        download_part(buffers, buffers->norm, slot, offsets->norm_out, offsets->norm_bytes, part) &&
        download_part(buffers, cell->residual_out, slot, offsets->residual_out, cell->residual_out_bytes,
                      part) &&
        download(buffers, cell->block_scales, slot_address(buffers, slot) + offsets->block_scales,
                 cell->block_scales_bytes);
    return fetched && device_finish(buffers->device) ? 0 : -1;
}

static bool fetch_hashes(struct cell_buffers *buffers) {
    size_t bytes = (size_t)buffers->slots * sizeof(uint64_t);
    return download(buffers, buffers->known_hashes, buffers->hashes, bytes) && device_finish(buffers->device);
}

// Fetches the hashes of all slots at once, because each fetch waits for the GPU.
uint64_t buffers_hash(void *of, int slot) {
    struct cell_buffers *buffers = of;
    if (!buffers->hashes_are_known) {
        bool there = buffers->hashes_are_enqueued ||
                     buffers_enqueue_hashes(buffers, buffers->device, buffers_all_slots(buffers));
        buffers->hashes_are_known = there && fetch_hashes(buffers);
    }
    return buffers->known_hashes[slot];
}

bool buffers_are_unchanged(void *of, int slot) {
    struct cell_buffers *buffers = of;
    uint64_t before[MAX_SLOTS];
    bool are_of_the_call = buffers->hashes_are_enqueued;
    buffers_hash(buffers, slot);
    if (!are_of_the_call) return true;
    memcpy(before, buffers->known_hashes, sizeof before);
    bool same = buffers_enqueue_hashes(buffers, buffers->device, buffers_all_slots(buffers)) &&
                fetch_hashes(buffers) && buffers->known_hashes[slot] == before[slot];
    memcpy(buffers->known_hashes, before, sizeof before);
    return same;
}
