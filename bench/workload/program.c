// Reads a workload's program and makes its arrays; see program.h.
#include "program.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elements/element.h"
#include "elements/random.h"
#include "fields.h"
#include "ranks/memory_limit.h"

enum {
    ALIGNMENT = 64,    // of arrays
    LARGEST_INPUT = 2, // inputs are -2 .. 2
};
_Static_assert((MOST_PRODUCTS + 1) * LARGEST_INPUT * LARGEST_INPUT == 1 << FLT_MANT_DIG,
               "what a float32 holds exactly");

static const char *const kind_names[COLLECTIVE_KINDS] = {"allreduce", "all_gather", "reduce_scatter",
                                                         "all_to_all"};

// Whole numbers up to this one are exact.
static double largest_exact(enum dtype dtype) {
    return 1 / dtype_unit_roundoff(dtype);
}

static int wrong(char reason[], const char *line, const char *what) {
    snprintf(reason, PROGRAM_REASON, "%s: %.120s", what, line);
    return -1;
}

// ---- lines --------------------------------------------------------------------------------------

// The dtype of the field; default float32.
static bool read_dtype(const char *line, enum dtype *dtype) {
    char name[NAME_SIZE];
    *dtype = DTYPE_FLOAT32;
    if (!field_text(line, "dtype", name, sizeof name)) return true;
    for (int i = 0; i < DTYPES; i++) {
        *dtype = (enum dtype)i;
        if (strcmp(name, dtype_names[i]) == 0) return true;
    }
    return false;
}

static int read_begin(struct program *program, const char *line, char reason[]) {
    size_t seed;
    bool well = field_text(line, "name", program->name, sizeof program->name) &&
                field_number(line, "gemms", 1, MOST_ITEMS, &program->gemms_to_come) &&
                field_number(line, "collectives", 0, MOST_ITEMS, &program->collectives_to_come) &&
                field_number(line, "actions", 1, MOST_ITEMS, &program->actions_to_come) &&
                field_number(line, "seed", 0, UINT32_MAX, &seed);
    if (!well || program->gemms != NULL)
        return wrong(reason, line, "begin: repeated, or with a missing or invalid field");
    program->seed = seed;
    program->gemms = calloc(program->gemms_to_come, sizeof *program->gemms);
    program->collectives = calloc(program->collectives_to_come + 1, sizeof *program->collectives);
    program->actions = calloc(program->actions_to_come, sizeof *program->actions);
    program->arrays =
        calloc(3 * program->gemms_to_come + 2 * program->collectives_to_come + 1, sizeof *program->arrays);
    if (program->gemms == NULL || program->collectives == NULL || program->actions == NULL ||
        program->arrays == NULL)
        return wrong(reason, line, "out of memory");
    return 1;
}

static bool read_all_to_all(const struct program *program, const char *line, struct collective *collective) {
    size_t matrix[MAX_NODE_RANKS * MAX_NODE_RANKS], ranks = (size_t)program->ranks,
                                                    me = (size_t)program->rank;
    if (!field_numbers(line, "matrix", 0, SIZE_MAX / 64, ranks * ranks, matrix)) return false;
    collective->even = true;
    for (size_t i = 0; i < ranks * ranks; i++) collective->even = collective->even && matrix[i] == matrix[0];
    for (size_t peer = 0; peer < ranks; peer++) {
        collective->send[peer] = matrix[me * ranks + peer];
        collective->receive[peer] = matrix[peer * ranks + me];
        collective->in_elements += collective->send[peer];
        collective->out_elements += collective->receive[peer];
    }
    return true;
}

static int read_collective(struct program *program, const char *line, char reason[]) {
    if (program->collective_count == program->collectives_to_come)
        return wrong(reason, line, "one collective too many");
    struct collective *collective = &program->collectives[program->collective_count];
    char kind[NAME_SIZE];
    int index = 0;
    if (!field_text(line, "name", collective->name, NAME_SIZE) || !field_text(line, "kind", kind, NAME_SIZE))
        return wrong(reason, line, "a collective without name or kind");
    while (index < COLLECTIVE_KINDS && strcmp(kind, kind_names[index]) != 0) index++;
    if (index == COLLECTIVE_KINDS) return wrong(reason, line, "no such collective");
    collective->kind = (enum collective_kind)index;
    if (!read_dtype(line, &collective->dtype)) return wrong(reason, line, "a collective of no such dtype");
    bool well = collective->kind == ALL_TO_ALL
                    ? read_all_to_all(program, line, collective)
                    : field_number(line, "elements", 1, SIZE_MAX / 1024, &collective->elements);
    if (!well) return wrong(reason, line, "a collective without a valid size");
    size_t all = collective->elements * (size_t)program->ranks;
    if (collective->kind != ALL_TO_ALL) {
        collective->in_elements = collective->kind == REDUCE_SCATTER ? all : collective->elements;
        collective->out_elements = collective->kind == ALL_GATHER ? all : collective->elements;
    }
    if (collective->in_elements > MOST_ELEMENTS || collective->out_elements > MOST_ELEMENTS)
        return wrong(reason, line, "a collective of more elements than MPI counts");
    program->collective_count++;
    return 1;
}

// Reads a field COLLECTIVE@OFFSET; `elements` of this dtype must fit after the offset. Without the field,
// *from stays -1.
static bool read_place(const struct program *program, const char *line, const char *name, bool sent,
                       enum dtype dtype, size_t elements, int *from, size_t *offset) {
    char text[NAME_SIZE], *end;
    *from = -1;
    if (!field_text(line, name, text, sizeof text)) return true;
    unsigned long index = strtoul(text, &end, 10);
    if (end == text || *end != '@' || index >= program->collective_count) return false;
    const struct collective *collective = &program->collectives[index];
    size_t room = sent ? collective->in_elements : collective->out_elements;
    const char *digits = end + 1;
    *offset = strtoull(digits, &end, 10);
    *from = (int)index;
    return end != digits && *end == '\0' && collective->dtype == dtype && *offset <= room &&
           elements <= room - *offset;
}

static bool read_layout(const char *line, struct gemm *gemm) {
    char layout[3], phase[NAME_SIZE];
    if (!field_text(line, "layout", layout, sizeof layout) || strlen(layout) != 2) return false;
    if (!field_text(line, "phase", phase, sizeof phase)) return false;
    gemm->trans_a = layout[0] == 'T';
    gemm->trans_b = layout[1] == 'T';
    gemm->backward = strcmp(phase, "backward") == 0;
    return strspn(layout, "NT") == 2 && (gemm->backward || strcmp(phase, "forward") == 0);
}

// The maximum over the ranks of the number of products that are summed in an element of the GEMM's result,
// including those of GEMMs that it accumulates to.
static size_t terms_of(const struct program *program, const struct gemm *gemm, const size_t k[]) {
    size_t terms = 0;
    for (int rank = 0; rank < program->ranks; rank++) terms = k[rank] > terms ? k[rank] : terms;
    for (size_t i = program->gemm_count; gemm->accumulate && gemm->into >= 0 && i-- > 0;) {
        const struct gemm *before = &program->gemms[i];
        if (before->into == gemm->into && before->c_offset == gemm->c_offset) return terms + before->terms;
    }
    return terms;
}

static int read_gemm(struct program *program, const char *line, char reason[]) {
    if (program->gemm_count == program->gemms_to_come) return wrong(reason, line, "one GEMM too many");
    struct gemm *gemm = &program->gemms[program->gemm_count];
    size_t m[MAX_NODE_RANKS], k[MAX_NODE_RANKS], accumulate = 0, ranks = (size_t)program->ranks;
    bool well =
        field_text(line, "name", gemm->name, NAME_SIZE) && field_numbers(line, "m", 1, LONGEST, ranks, m) &&
        field_numbers(line, "k", 1, LONGEST, ranks, k) && field_number(line, "n", 1, LONGEST, &gemm->n) &&
        field_number(line, "sequence", 0, MOST_ITEMS, &gemm->sequence) && read_layout(line, gemm) &&
        read_dtype(line, &gemm->dtype);
    if (!well) return wrong(reason, line, "an impossible GEMM");
    gemm->m = m[program->rank];
    gemm->k = k[program->rank];
    field_number(line, "accumulate", 0, 1, &accumulate);
    gemm->accumulate = accumulate == 1;
    size_t a = gemm->m * gemm->k, b = gemm->k * gemm->n, c = gemm->m * gemm->n;
    well = read_place(program, line, "a", false, gemm->dtype, a, &gemm->a_from, &gemm->a_offset) &&
           read_place(program, line, "b", false, gemm->dtype, b, &gemm->b_from, &gemm->b_offset) &&
           read_place(program, line, "into", true, gemm->dtype, c, &gemm->into, &gemm->c_offset);
    if (!well) return wrong(reason, line, "a GEMM that does not fit its collective");
    gemm->terms = terms_of(program, gemm, k);
    if (gemm->terms * ranks > MOST_PRODUCTS)
        return wrong(reason, line, "a GEMM with sums that a float does not represent exactly");
    program->gemm_count++;
    return 1;
}

static int read_action(struct program *program, const char *line, char reason[]) {
    static const char *const kinds[] = {"gemm", "post", "await"};
    if (program->action_count == program->actions_to_come) return wrong(reason, line, "one action too many");
    for (int kind = DO_GEMM; kind <= DO_AWAIT; kind++) {
        size_t count = kind == DO_GEMM ? program->gemm_count : program->collective_count, index;
        if (count == 0 || !field_number(line, kinds[kind], 0, count - 1, &index)) continue;
        struct action action = {.kind = (enum action_kind)kind, .index = (int)index};
        program->actions[program->action_count++] = action;
        return 1;
    }
    return wrong(reason, line, "no such action");
}

// ---- arrays -------------------------------------------------------------------------------------

// float32 arrays have whole numbers from -2 to 2. Smaller types have -1, 0 and 1, with so many zeros that the
// sums of all ranks are eight standard deviations (of n products of two such numbers: density * sqrt(n))
// below the first whole number that is not exact. Nothing is rounded, in any order of the sums.
static double density_of(const struct program *program, enum dtype dtype) {
    enum { DEVIATIONS = 8 };
    size_t terms = 1;
    for (size_t i = 0; i < program->gemm_count; i++) {
        const struct gemm *gemm = &program->gemms[i];
        if (gemm->dtype == dtype && gemm->terms > terms) terms = gemm->terms;
    }
    double density = largest_exact(dtype) / (double)DEVIATIONS / sqrt((double)terms * (double)program->ranks);
    return dtype == DTYPE_FLOAT32 || density > 1 ? 1 : density;
}

static void fill(const struct array *array, double density, uint64_t seed) {
    double most = density * 0x1p32;
    for (size_t i = 0; i < array->count; i++) {
        uint64_t z = random_64(&seed);
        float small = (double)(z >> 32) >= most ? 0 : (z & 1) != 0 ? 1 : -1;
        float number = (float)(z % (2 * LARGEST_INPUT + 1)) - (float)LARGEST_INPUT;
        element_store(array->dtype, array->data, i, array->dtype == DTYPE_FLOAT32 ? number : small);
    }
}

// All bits set is a NaN in every type.
static void poison(void *array, enum dtype dtype, size_t count) {
    memset(array, 0xff, count * dtype_sizes_bytes[dtype]);
}

// Makes and fills an array; its contents depend on the rank and its position. NULL: out of memory.
static void *new_array(struct program *program, enum dtype dtype, size_t count) {
    struct array array = {.dtype = dtype, .count = count};
    size_t bytes = (array_bytes(&array) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    array.data = aligned_alloc(ALIGNMENT, bytes > 0 ? bytes : ALIGNMENT);
    if (array.data == NULL) return NULL;
    program->arrays[program->array_count++] = array;
    fill(&array, program->densities[dtype],
         program->seed ^ (uint64_t)program->rank << 56 ^ (uint64_t)program->array_count << 32);
    return array.data;
}

static size_t bytes_needed(const struct program *program) {
    size_t elements[DTYPES] = {0}, bytes = 0;
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        elements[collective->dtype] += collective->in_elements + collective->out_elements;
    }
    for (size_t i = 0; i < program->gemm_count; i++) {
        const struct gemm *gemm = &program->gemms[i];
        if (gemm->a_from < 0) elements[gemm->dtype] += gemm->m * gemm->k;
        if (gemm->b_from < 0) elements[gemm->dtype] += gemm->k * gemm->n;
        if (gemm->into < 0) elements[gemm->dtype] += gemm->m * gemm->n;
    }
    for (int dtype = 0; dtype < DTYPES; dtype++) bytes += elements[dtype] * dtype_sizes_bytes[dtype];
    return bytes;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

// Bytes besides the arrays: 16-bit matrices as floats while they are multiplied (multiply.h), and the largest
// result while it is checked (verify.h).
static size_t bytes_beside(const struct program *program) {
    size_t a = 0, b = 0, c = 0, check = 0;
    for (size_t i = 0; i < program->gemm_count; i++) {
        const struct gemm *gemm = &program->gemms[i];
        if (gemm->dtype == DTYPE_FLOAT32) continue;
        a = larger(a, gemm->m * gemm->k);
        b = larger(b, gemm->k * gemm->n);
        c = larger(c, gemm->m * gemm->n);
    }
    check = larger(a, larger(b, c));
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *one = &program->collectives[i];
        size_t widened = one->dtype == DTYPE_FLOAT32 ? 0 : one->in_elements + one->out_elements;
        check = larger(check, widened + one->out_elements);
    }
    return (a + b + c + check) * sizeof(float);
}

// Whether the memory that all ranks need is available now.
static bool fits_memory(const struct program *program, size_t bytes) {
    return bytes < machine_memory_left("") / (size_t)program->ranks;
}

static void *place(struct program *program, enum dtype dtype, int from, bool sent, size_t offset,
                   size_t count) {
    if (from < 0) return new_array(program, dtype, count);
    struct collective *collective = &program->collectives[from];
    return element_at(sent ? collective->in : collective->out, dtype, offset);
}

static int make_arrays(struct program *program, char reason[]) {
    program->bytes = bytes_needed(program);
    for (int dtype = 0; dtype < DTYPES; dtype++)
        program->densities[dtype] = density_of(program, (enum dtype)dtype);
    size_t bytes = program->bytes + bytes_beside(program);
    bool well = fits_memory(program, bytes);
    for (size_t i = 0; well && i < program->collective_count; i++) {
        struct collective *collective = &program->collectives[i];
        collective->in = new_array(program, collective->dtype, collective->in_elements);
        collective->out = new_array(program, collective->dtype, collective->out_elements);
        well = collective->in != NULL && collective->out != NULL;
    }
    for (size_t i = 0; well && i < program->gemm_count; i++) {
        struct gemm *gemm = &program->gemms[i];
        enum dtype dtype = gemm->dtype;
        gemm->a = place(program, dtype, gemm->a_from, false, gemm->a_offset, gemm->m * gemm->k);
        gemm->b = place(program, dtype, gemm->b_from, false, gemm->b_offset, gemm->k * gemm->n);
        gemm->c = place(program, dtype, gemm->into, true, gemm->c_offset, gemm->m * gemm->n);
        well = gemm->a != NULL && gemm->b != NULL && gemm->c != NULL;
    }
    if (well) return 0;
    snprintf(reason, PROGRAM_REASON, "%.1f GB of arrays for each of %d ranks: more than is free",
             (double)bytes * 1e-9, program->ranks);
    return -1;
}

// ---- public -------------------------------------------------------------------------------------

int program_read(struct program *program, const char *line, char reason[PROGRAM_REASON]) {
    if (line_is(line, "begin")) return read_begin(program, line, reason);
    if (program->gemms == NULL) return wrong(reason, line, "a program begins with begin");
    if (line_is(line, "collective")) return read_collective(program, line, reason);
    if (line_is(line, "gemm")) return read_gemm(program, line, reason);
    if (line_is(line, "do")) return read_action(program, line, reason);
    if (!line_is(line, "end")) return wrong(reason, line, "unknown line of a program");
    if (program->gemm_count < program->gemms_to_come || program->action_count < program->actions_to_come ||
        program->collective_count < program->collectives_to_come)
        return wrong(reason, line, "less than was announced before");
    return make_arrays(program, reason);
}

void program_poison(struct program *program) {
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        poison(collective->out, collective->dtype, collective->out_elements);
    }
    for (size_t i = 0; i < program->gemm_count; i++) {
        const struct gemm *gemm = &program->gemms[i];
        poison(gemm->c, gemm->dtype, gemm->m * gemm->n);
    }
}

void program_free(struct program *program) {
    for (size_t i = 0; i < program->array_count; i++) free(program->arrays[i].data);
    free(program->arrays);
    free(program->gemms);
    free(program->collectives);
    free(program->actions);
    *program = (struct program){0};
}
