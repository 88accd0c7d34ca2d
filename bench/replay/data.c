// Operands in memory; see data.h.
#include "data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "elements/conversions.h"
#include "elements/random.h"
#include "parallel_for.h"
#include "ranks/memory_limit.h"
#include "wide.h"

static const double MOST_OF_MEMORY = 0.8; // of the available memory

double data_type_error(enum data_type type) {
    static const double errors[DATA_TYPES] = {
        [FLOAT64] = 0x1p-51,      [FLOAT32] = 0x1p-22,   [FLOAT16] = 0x1p-10, [BFLOAT16] = 0x1p-8,
        [FLOAT8_E4M3FN] = 0x5p-6, [FLOAT8_E5M2] = 0x5p-5}; // of float8: 5/4 of a rounding
    return errors[type];
}

double data_type_least(enum data_type type) {
    return type == FLOAT8_E4M3FN ? 0x1p-6 : type == FLOAT8_E5M2 ? 0x1p-14 : 0;
}

// The type of the result of an op that is computed in `type`.
static enum data_type result_type(const struct op *op, enum data_type type) {
    return op->kind == OP_GEMM && op->gemm.scaling != SCALE_NOTHING ? op->gemm.out_type : type;
}

// The type of the addend of such an op.
static enum data_type addend_type(const struct op *op, enum data_type type) {
    return op->kind == OP_GEMM && op->gemm.scaling != SCALE_NOTHING ? op->gemm.addend_type : type;
}

// ---- E4M3: no infinity, and one NaN of either sign -------------------------------------------------------

static double e4m3_value(uint8_t bits) {
    if ((bits & 0x7F) == 0x7F) return (double)NAN;
    double magnitude = minifloat_magnitude(bits & 0x7F, 3, 7);
    return (bits >> 7) != 0 ? -magnitude : magnitude;
}

// The code of -2 .. 2.
static uint8_t e4m3_code(int value) {
    unsigned code = value == 0 ? 0 : abs(value) == 1 ? 0x38 : 0x40;
    return (uint8_t)(value < 0 ? code | 0x80 : code);
}

// ---- E2M1: two in a byte, the first one in the lower bits ------------------------------------------------

static double e2m1_value(unsigned bits) {
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return (bits & 8) != 0 ? -magnitudes[bits & 7] : magnitudes[bits & 7];
}

// The code of -2 .. 2.
static unsigned e2m1_code(int value) {
    unsigned code = (unsigned)abs(value) * 2;
    return value < 0 ? code | 8 : code;
}

// ---- values ---------------------------------------------------------------------------------------------

// Stores a value at `index`; or two, of 4 bits, in the byte there.
static void store(struct tensor *tensor, size_t index, int value, int next) {
    switch (tensor->type) {
    case FLOAT32: ((float *)tensor->data)[index] = (float)value; break;
    case FLOAT64: ((double *)tensor->data)[index] = value; break;
    case BFLOAT16: ((uint16_t *)tensor->data)[index] = bfloat16_of_float((float)value); break;
    case FLOAT16: ((uint16_t *)tensor->data)[index] = float16_of_float((float)value); break;
    // The upper half of an fp16.
    case FLOAT8_E5M2:
        ((uint8_t *)tensor->data)[index] = (uint8_t)(float16_of_float((float)value) >> 8);
        break;
    case FLOAT4_E2M1FN_X2:
        ((uint8_t *)tensor->data)[index] = (uint8_t)(e2m1_code(value) | e2m1_code(next) << 4);
        break;
    default: ((uint8_t *)tensor->data)[index] = e4m3_code(value); break;
    }
}

enum { PERIOD = 65521 }; // a prime number of elements, so that neighbouring rows of a matrix differ

// An array that is filled from `first` on with copies of its first PERIOD elements.
struct filling {
    struct tensor *tensor;
    size_t first;
};

static void repeat_some(void *context, size_t from, size_t to) {
    const struct filling *at = context;
    struct tensor *tensor = at->tensor;
    size_t width = data_type_size(tensor->type);
    for (size_t period = from; period < to; period++) {
        size_t i = at->first + period * PERIOD;
        size_t count = tensor->count - i < PERIOD ? tensor->count - i : PERIOD;
        memcpy((char *)tensor->data + i * width, tensor->data, count * width);
    }
}

static int draw(uint64_t *seed) {
    enum { VALUES = 2 * LARGEST_VALUE + 1 };
    return (int)(random_64(seed) % VALUES) - LARGEST_VALUE;
}

// Fills with random numbers that repeat. The first `known` elements are filled already. A new page is cleared
// when it is first written, which several threads do in parallel. Pairs in a byte count as one element here.
static void fill(struct tensor *tensor, size_t known, int threads) {
    size_t drawn = tensor->count < PERIOD ? tensor->count : PERIOD;
    uint64_t seed = 1;
    for (size_t i = 0; i < drawn; i++) {
        int value = draw(&seed);
        store(tensor, i, value, is_float4(tensor->type) ? draw(&seed) : 0);
    }
    size_t whole = known / PERIOD * PERIOD; // a partly filled period is filled again
    struct filling rest = {tensor, whole > drawn ? whole : drawn};
    if (rest.first < tensor->count)
        parallel_for(threads, (tensor->count - rest.first + PERIOD - 1) / PERIOD, repeat_some, &rest);
}

static void poison_some(void *context, size_t from, size_t to) {
    memset((char *)context + from, 0xFF, to - from);
}

void tensor_poison(const struct tensor *tensor, int threads) {
    enum { WORTH_A_THREAD = 1 << 20 };
    size_t bytes = tensor->count * data_type_size(tensor->type);
    parallel_for(bytes < WORTH_A_THREAD ? 1 : threads, bytes, poison_some, tensor->data);
}

static double stored_value(const struct tensor *tensor, size_t index) {
    switch (tensor->type) {
    case FLOAT32: return ((const float *)tensor->data)[index];
    case FLOAT64: return ((const double *)tensor->data)[index];
    case BFLOAT16: return float_of_bfloat16(((const uint16_t *)tensor->data)[index]);
    case FLOAT16: return float_of_float16(((const uint16_t *)tensor->data)[index]);
    case FLOAT8_E5M2: return float_of_float16((uint16_t)(((const uint8_t *)tensor->data)[index] << 8));
    case FLOAT4_E2M1FN_X2:
        return e2m1_value((uint32_t)((const uint8_t *)tensor->data)[index / 2] >> (index % 2 * 4) & 0xFu);
    default: return e4m3_value(((const uint8_t *)tensor->data)[index]);
    }
}

double tensor_value(const struct tensor *tensor, size_t index) {
    double value = stored_value(tensor, index);
    return tensor->is_near ? rint(value) : value;
}

WIDE static void load_floats(const float data[], size_t count, double to[]) {
    for (size_t i = 0; i < count; i++) to[i] = data[i];
}

void tensor_load(const struct tensor *tensor, size_t from, size_t step, size_t count, double to[]) {
    if (tensor->type == FLOAT32) {
        const float *data = (const float *)tensor->data + from;
        if (step == 1) load_floats(data, count, to);
        for (size_t i = 0; i < count && step != 1; i++) to[i] = data[i * step];
    } else if (tensor->type == FLOAT64) {
        const double *data = (const double *)tensor->data + from;
        for (size_t i = 0; i < count; i++) to[i] = data[i * step];
    } else if (tensor->type == BFLOAT16) {
        const uint16_t *data = (const uint16_t *)tensor->data + from;
        for (size_t i = 0; i < count; i++) to[i] = float_of_bfloat16(data[i * step]);
    } else {
        for (size_t i = 0; i < count; i++) to[i] = stored_value(tensor, from + i * step);
    }
    for (size_t i = 0; i < count && tensor->is_near; i++) to[i] = rint(to[i]);
}

// ---- sizes and memory -----------------------------------------------------------------------------------

struct sizes {
    double a, b, c, out; // in elements; as doubles, since they may exceed any integer type
};

static struct sizes sizes_of_gemm(const struct gemm *gemm) {
    double batch = (double)gemm->batch, product = (double)gemm->m * (double)gemm->n;
    double last_a = (double)gemm->lda * (double)((gemm->trans_a ? gemm->k : gemm->m) - 1);
    double last_b = (double)gemm->ldb * (double)((gemm->trans_b ? gemm->n : gemm->k) - 1);
    struct sizes sizes = {
        .a = (batch - 1) * (double)gemm->stride_a + last_a + (double)(gemm->trans_a ? gemm->m : gemm->k),
        .b = (batch - 1) * (double)gemm->stride_b + last_b + (double)(gemm->trans_b ? gemm->k : gemm->n),
        .out = batch * product,
    };
    if (gemm->addend == ADD_ROW) sizes.c = (double)gemm->n;
    if (gemm->addend == ADD_MATRIX) sizes.c = sizes.out;
    return sizes;
}

static struct sizes sizes_of_convolution(const struct convolution *at) {
    double input = 1, filter = 1, output = 1;
    for (int i = 0; i < MOST_SPATIAL; i++) {
        input *= (double)at->input[i];
        filter *= (double)at->filter[i];
        output *= (double)at->output[i];
    }
    double batch = (double)at->batch, in = (double)at->in_channels, out = (double)at->out_channels;
    return (struct sizes){.a = batch * in * input,
                          .b = in * out / (double)at->groups * filter,
                          .c = at->has_bias ? out : 0,
                          .out = batch * out * output};
}

// Where the gradients lie in the result, and its size: in elements, with each part at a multiple of a
// cache line.
struct places {
    double from[GRADIENTS], count[GRADIENTS], end;
};

static struct places places_of(const struct convolution *at) {
    enum { LINE = 128 };
    const struct sizes sizes = sizes_of_convolution(at);
    const double counts[GRADIENTS] = {sizes.a, sizes.b, (double)at->out_channels};
    struct places places = {.end = 0};
    for (int i = 0; i < GRADIENTS; i++) {
        places.from[i] = places.end;
        places.count[i] = has_gradient(at, (enum gradient)i) ? counts[i] : 0;
        places.end += ceil(places.count[i] / LINE) * LINE;
    }
    return places;
}

struct gradients gradients_in(const struct tensor *out, const struct convolution *at) {
    const struct places places = places_of(at);
    struct gradients made;
    for (int i = 0; i < GRADIENTS; i++) {
        made.of[i] = *out;
        made.of[i].count = (size_t)places.count[i];
        made.of[i].data = (char *)out->data + (size_t)places.from[i] * data_type_size(out->type);
    }
    return made;
}

static struct sizes sizes_of_backward(const struct convolution *at) {
    const struct sizes forward = sizes_of_convolution(at);
    return (struct sizes){.a = forward.out,
                          .b = has_gradient(at, OF_INPUT) ? forward.b : 0,
                          .c = has_gradient(at, OF_FILTER) ? forward.a : 0,
                          .out = places_of(at).end};
}

static struct sizes sizes_of(const struct op *op) {
    if (op->kind == OP_GEMM) return sizes_of_gemm(&op->gemm);
    return op->kind == OP_CONVOLUTION ? sizes_of_convolution(&op->convolution)
                                      : sizes_of_backward(&op->convolution);
}

// The memory that is available now; if that is unknown, all that this process may have.
static double available_bytes(void) {
    return fmin((double)machine_memory_left(""), (double)machine_memory_bytes(""));
}

// The bytes of a tensor, rounded up to whole cache lines.
static size_t padded(double count, enum data_type type) {
    enum { LINE = 128 };
    const struct tensor tensor = {.type = type, .count = (size_t)count};
    return (tensor_bytes(&tensor) + LINE - 1) / LINE * LINE;
}

// Memory for the operands of one op after another: a mapping as large as the available memory. The system
// provides a page at the first write to it, which takes about as long as filling the page.
struct room {
    char *data;
    size_t size;
    struct tensor values; // the numbers that operands are copied from
};

static bool reserve(struct room *room, size_t bytes) {
    if (bytes <= room->size) return true;
    double available = available_bytes();
    size_t size = available > (double)bytes ? (size_t)available : bytes;
    if (room->data != NULL) munmap(room->data, room->size);
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool is_there = data != MAP_FAILED; // NOLINT
    *room = (struct room){.data = is_there ? data : NULL, .size = is_there ? size : 0};
    if (is_there) madvise(data, size, MADV_HUGEPAGE); // without huge pages, small ones are used
    return is_there;
}

// Fills the first `bytes` with values of this type, unless they have them.
static void provide(struct room *room, enum data_type type, size_t bytes, int threads) {
    size_t count = bytes / data_type_size(type), known = room->values.count;
    if (room->values.type == type && known >= count) return;
    if (room->values.type != type) known = 0;
    room->values = (struct tensor){.type = type, .count = count, .data = room->data};
    fill(&room->values, known, threads);
}

// Takes the memory of a tensor at `*at`, and advances `*at`.
static void cut(struct tensor *tensor, enum data_type type, double count, char **at) {
    *tensor = (struct tensor){.type = type, .count = (size_t)count, .data = *at};
    if (tensor->count == 0) tensor->data = NULL;
    if (tensor->count > 0) *at += padded(count, type);
}

int operands_make(const struct op *op, enum data_type type, int threads, struct operands *operands,
                  char reason[]) {
    struct sizes sizes = sizes_of(op);
    enum data_type result = result_type(op, type), added_type = addend_type(op, type);
    double bytes = (sizes.a + sizes.b) * (double)data_type_size(type) +
                   sizes.c * (double)data_type_size(added_type) + sizes.out * (double)data_type_size(result);
    double available = available_bytes();
    if (bytes > MOST_OF_MEMORY * available) {
        snprintf(reason, REASON_SIZE, "takes %.1f GB of memory, and %.1f GB are available", bytes / 1e9,
                 available / 1e9);
        return -1;
    }
    static struct room inputs, addend; // the result comes after the inputs
    // All inputs of a backward convolution follow each other: from `addend` C would have A's numbers.
    bool has_three = op->kind == OP_CONVOLUTION_BACKWARD;
    size_t input_bytes =
               padded(sizes.a, type) + padded(sizes.b, type) + (has_three ? padded(sizes.c, type) : 0),
           added_bytes = has_three ? 0 : padded(sizes.c, added_type);
    if (!reserve(&inputs, input_bytes + padded(sizes.out, result)) || !reserve(&addend, added_bytes)) {
        snprintf(reason, REASON_SIZE, "out of memory: takes %.1f GB", bytes / 1e9);
        return -1;
    }
    provide(&inputs, type, input_bytes, threads);
    provide(&addend, added_type, added_bytes, threads);
    inputs.values.count = input_bytes / data_type_size(type); // the result overwrites the later ones
    char *at = inputs.data, *added = addend.data, *out = inputs.data + input_bytes;
    cut(&operands->a, type, sizes.a, &at);
    cut(&operands->b, type, sizes.b, &at);
    cut(&operands->c, added_type, sizes.c, has_three ? &at : &added);
    cut(&operands->out, result, sizes.out, &out);
    return 0;
}
