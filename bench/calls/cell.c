// The data and the reference of a cell; see cell.h.
#include "cell.h"

#include <stdlib.h>
#include <string.h>

#include "elements/element.h"
#include "elements/fusion.h"
#include "elements/kernels.h"
#include "elements/values.h"

enum {
    PAGE = 4096,
    MANY_SHIFTS_UP_TO_BYTES = 256 << 10, // larger cells have fewer data sets, as each strategy checks all
    FEW_SHIFTS = 3,
    STREAM_RESIDUAL = 1000, // random streams beside those of the ranks
    STREAM_GAMMA = 1001,
};

// ---- data ---------------------------------------------------------------------------------------

// The weights of a norm are near 1.
static void fill_gamma(enum dtype dtype, void *to, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) element_store(dtype, to, i, 1 + value_at(seed, i, 6) / 2);
}

// The elements that all calls of a cell read together, if one call reads `elements`.
static size_t with_shifts(const struct cell *cell, size_t elements) {
    return elements + (cell->data_sets - 1) * cell->stride;
}

// ---- open and close -----------------------------------------------------------------------------

const char *shape_refusal(const struct shape *shape) {
    const struct fusion_facts *facts = &fusion_facts[shape->fusion];
    if (facts->block_elements > 0 && shape->hidden_size % facts->block_elements != 0)
        return facts->block_refusal;
    if (shape->fusion != FUSION_NONE && shape->op != OP_ALLREDUCE) return "only an allreduce has an epilogue";
    return NULL;
}

const char *shape_refusal_of_ranks(const struct shape *shape, int ranks) {
    size_t elements = shape->num_tokens * shape->hidden_size;
    if (!traffic_moves(shape->op, shape->splits, ranks)) return "the splits leave nothing for these ranks";
    if (elements % traffic_unit(shape->op, shape->splits, ranks) != 0) {
        return "the elements do not divide among the ranks";
    }
    return shape_refusal(shape);
}

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *pages(size_t bytes) {
    return bytes == 0 ? NULL : aligned_alloc(PAGE, whole_pages(bytes));
}

// An array of a cell with at least `bytes` bytes; NULL: out of memory, or of no bytes.
static void *pages_of(const struct cell *cell, enum cell_array which, size_t bytes) {
    struct cell_memory *memory = cell->memory;
    if (memory == NULL || bytes == 0) return pages(bytes);
    if (memory->bytes[which] < bytes) {
        free(memory->arrays[which]);
        memory->arrays[which] = pages(bytes);
        memory->bytes[which] = memory->arrays[which] != NULL ? bytes : 0;
    }
    return memory->arrays[which];
}

void cell_memory_free(struct cell_memory *memory) {
    for (int i = 0; i < CELL_ARRAYS; i++) free(memory->arrays[i]);
    *memory = (struct cell_memory){.bytes = {0}};
}

// Sets all of a cell but its arrays.
static void set_sizes(struct cell *cell, const struct shape *shape, int rank, int ranks, uint32_t seed) {
    size_t elements = shape->num_tokens * shape->hidden_size;
    *cell = (struct cell){.shape = *shape, .rank = rank, .ranks = ranks, .seed = seed};
    bool is_small = elements * dtype_sizes_bytes[shape->dtype] <= MANY_SHIFTS_UP_TO_BYTES;
    cell->data_sets = is_small ? MAX_DATA_SETS : FEW_SHIFTS;
    cell->input_elements = cell->out_elements = elements;
    cell->stride = shape->hidden_size;
    if (shape->op != OP_ALLREDUCE) {
        traffic_of(shape->op, shape->splits, elements, cell->rank, cell->ranks, 0, &cell->traffic);
        cell->input_elements = cell->traffic.send_elements;
        cell->out_elements = cell->traffic.receive_elements;
        cell->stride = CELL_STRIDE_ELEMENTS;
    }
    cell->out_bytes = fusion_out_bytes(shape->fusion, shape->dtype, cell->out_elements);
    if (shape->fusion != FUSION_NONE)
        cell->residual_out_bytes = cell->out_elements * dtype_sizes_bytes[shape->dtype];
    if (fusion_facts[shape->fusion].block_elements > 0)
        cell->block_scales_bytes = block_scales_bytes(shape->num_tokens, shape->hidden_size);
}

// Bytes of the arrays that are only read.
struct read_bytes {
    size_t input, residual, gamma;
};

static struct read_bytes read_bytes_of(const struct cell *cell) {
    const struct shape *shape = &cell->shape;
    size_t element_bytes = dtype_sizes_bytes[shape->dtype];
    bool fused = shape->fusion != FUSION_NONE;
    size_t input = with_shifts(cell, cell->input_elements) * element_bytes;
    return (struct read_bytes){.input = input,
                               .residual = fused ? input : 0,
                               .gamma = fused ? shape->hidden_size * element_bytes : 0};
}

size_t cell_bytes(const struct shape *shape, int rank, int ranks) {
    struct cell cell;
    set_sizes(&cell, shape, rank, ranks, 0);
    struct read_bytes read = read_bytes_of(&cell);
    return whole_pages(read.input) + whole_pages(read.residual) + whole_pages(read.gamma) +
           whole_pages(cell.out_bytes) + whole_pages(cell.residual_out_bytes) +
           whole_pages(cell.block_scales_bytes);
}

static void close_arrays(struct cell *cell) {
    if (cell->memory == NULL) {
        free(cell->input);
        free(cell->out);
        free(cell->residual);
        free(cell->gamma);
        free(cell->residual_out);
        free(cell->block_scales);
    }
    *cell = (struct cell){.shape = cell->shape};
}

static bool open_arrays(struct cell *cell) {
    struct read_bytes read = read_bytes_of(cell);
    size_t out_bytes = cell->out_bytes > 0 ? cell->out_bytes : 1; // also a rank that receives nothing
    cell->input = pages_of(cell, CELL_INPUT, read.input);
    cell->out = pages_of(cell, CELL_OUT, out_bytes);
    cell->residual = pages_of(cell, CELL_RESIDUAL, read.residual);
    cell->gamma = pages_of(cell, CELL_GAMMA, read.gamma);
    cell->residual_out = pages_of(cell, CELL_RESIDUAL_OUT, cell->residual_out_bytes);
    cell->block_scales = pages_of(cell, CELL_BLOCK_SCALES, cell->block_scales_bytes);
    bool fused = cell->shape.fusion != FUSION_NONE;
    return cell->input && cell->out && (!fused || (cell->residual && cell->gamma && cell->residual_out)) &&
           (cell->block_scales_bytes == 0 || cell->block_scales);
}

int cell_open_in(struct cell_memory *memory, struct cell *cell, const struct shape *shape, int rank,
                 int ranks, uint32_t seed) {
    set_sizes(cell, shape, rank, ranks, seed);
    cell->memory = memory;
    if (!open_arrays(cell)) {
        close_arrays(cell);
        return -1;
    }
    fill_kernel *fill = kernels_best()->fill[shape->dtype];
    size_t elements = with_shifts(cell, cell->input_elements);
    fill(cell->input, elements, seed_of(seed, rank));
    if (shape->fusion != FUSION_NONE) {
        fill(cell->residual, elements, seed_of(seed, STREAM_RESIDUAL));
        fill_gamma(shape->dtype, cell->gamma, shape->hidden_size, seed_of(seed, STREAM_GAMMA));
    }
    return 0;
}

int cell_open(struct cell *cell, const struct shape *shape, int rank, int ranks, uint32_t seed) {
    return cell_open_in(NULL, cell, shape, rank, ranks, seed);
}

void cell_close(struct cell *cell) {
    close_arrays(cell);
    *cell = (struct cell){0};
}

struct cell_part cell_part_of(const struct cell *cell, int index, int parts) {
    size_t unit = cell->shape.fusion != FUSION_NONE ? cell->shape.hidden_size : 1;
    size_t units = cell->out_elements / unit, each = (units + (size_t)parts - 1) / (size_t)parts;
    size_t first = (size_t)index * each < units ? (size_t)index * each : units;
    size_t end = first + each < units ? first + each : units;
    return (struct cell_part){.first = first * unit, .count = (end - first) * unit};
}

struct call cell_call(const struct cell *cell, size_t data_set) {
    const struct shape *shape = &cell->shape;
    size_t offset = data_set * cell->stride * dtype_sizes_bytes[shape->dtype];
    return (struct call){
        .op = shape->op,
        .traffic = shape->op == OP_ALLREDUCE ? NULL : &cell->traffic,
        .dtype = shape->dtype,
        .fusion = shape->fusion,
        .num_tokens = shape->num_tokens,
        .hidden_size = shape->hidden_size,
        .is_size_alone = shape->is_size_alone,
        .input = cell->input + offset,
        .residual = cell->residual ? cell->residual + offset : NULL,
        .gamma = cell->gamma,
        .residual_out = cell->residual_out,
        .out = cell->out,
        .block_scales = cell->block_scales,
        .epsilon = CELL_EPSILON,
        .scale = fusion_facts[shape->fusion].scale,
    };
}

double cell_sum(const struct cell *cell, size_t data_set, size_t element) {
    size_t index = cell->traffic.send_at[cell->rank] + data_set * cell->stride + element;
    double sum = 0;
    for (int rank = 0; rank < cell->ranks; rank++) {
        sum += (double)value_at(seed_of(cell->seed, rank), index, dtype_significand_bits[cell->shape.dtype]);
    }
    return sum;
}

void cell_poison(struct cell *cell) {
    memset(cell->out, 0xff, cell->out_bytes);
    if (cell->residual_out) memset(cell->residual_out, 0xff, cell->residual_out_bytes);
    // The padding of the scales is poisoned, too, so that hashes can be compared.
    if (cell->block_scales) memset(cell->block_scales, 0xff, cell->block_scales_bytes);
}

uint64_t cell_hash(const struct cell *cell, uint64_t (*hash)(const void *, size_t)) {
    uint64_t total = hash(cell->out, cell->out_bytes);
    if (cell->residual_out) total = total * 31 + hash(cell->residual_out, cell->residual_out_bytes);
    if (cell->block_scales) total = total * 31 + hash(cell->block_scales, cell->block_scales_bytes);
    return total;
}

static void make_zeros_positive(enum dtype dtype, void *array, size_t count) {
    if (dtype == DTYPE_FLOAT32) {
        uint32_t *words = array;
        for (size_t i = 0; i < count; i++) words[i] = words[i] == 0x80000000u ? 0 : words[i];
    } else {
        uint16_t *words = array;
        for (size_t i = 0; i < count; i++) words[i] = words[i] == 0x8000u ? 0 : words[i];
    }
}

// The sign of a code is its highest bit: of codes of a byte bit 7, of two codes a byte also bit 3.
static void make_zero_codes_positive(unsigned code_bits, unsigned char *codes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        unsigned low = codes[i] & 0xf, high = codes[i] & 0xf0;
        if (code_bits == 8) {
            codes[i] = codes[i] == 0x80 ? 0 : codes[i];
        } else {
            codes[i] = (unsigned char)((low == 0x8 ? 0 : low) | (high == 0x80 ? 0 : high));
        }
    }
}

uint64_t cell_bits(struct cell *cell, uint64_t (*hash)(const void *, size_t)) {
    const struct shape *shape = &cell->shape;
    size_t elements = cell->out_elements;
    if (fusion_has_codes(shape->fusion)) {
        make_zero_codes_positive(fusion_facts[shape->fusion].code_bits, cell->out, cell->out_bytes);
    } else {
        make_zeros_positive(shape->dtype, cell->out, elements);
    }
    if (cell->residual_out != NULL) make_zeros_positive(shape->dtype, cell->residual_out, elements);
    return cell_hash(cell, hash);
}
