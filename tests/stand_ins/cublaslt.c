// A stand-in for libcublasLt.so beside that of the driver: multiplies in the host's memory, column-major. It
// rejects types, scales, alignments and layouts that the documentation of cublasLtMatmul() excludes.
// Settings in STAND_IN:
//
//   algorithms_us=50,20,80   the time of each algorithm, and their number
//   wrong=1 broken=2         algorithm 1 has a result that is wrong by one; algorithm 2 cannot run
//   load_ms=20               the first product takes so much longer, because its kernel is loaded
//   refuses, no_start        no product is supported; the library does not start
//   illegal=13               a result with 13 columns breaks the GPU
//   sm=100                   the SM version; default 90
//   scale_order=1            scales are read in a wrong order
#include <cublasLt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libraries/blas.h"
#include "replay/data.h"

struct CUstream_st;
void stand_in_meet(struct CUstream_st *stream, int ranks, void (*together)(void **, int), void *argument);
void stand_in_pass(float ms);
void stand_in_break(void);
int stand_in_number(const char *name, int n, int otherwise);
void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

// Modes of scales, by the numbers of cublasLtMatmulMatrixScale_t; version 12.8 has names for the first ones
// only.
enum { SCALAR = 0, SMALLEST = 1, SMALL = 2, OUTER = 3, VECTOR = 4, SQUARE = 5 };

struct layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t leading, stride;
    int32_t batch;
};

struct product {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t on_a, on_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    cudaDataType_t bias_type;
    const void *a_scales, *b_scales, *d_scales;
    int32_t a_mode, b_mode; // of the scales
};

// The alignment in bytes of a call's operands, as the caller gave it.
struct preference {
    uint32_t alignments[4];
};

// One call.
struct task {
    struct product product;
    struct layout a, b, c, d;
    double alpha, beta;
    const void *a_data, *b_data, *c_data;
    void *d_data;
    int algorithm;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    static int there;
    *handle = (cublasLtHandle_t)(void *)&there;
    return stand_in_number("no_start", 0, 0) != 0 ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) {
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OTHER";
}

// ---- descriptions ---------------------------------------------------------------------------------------

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    struct product *product = calloc(1, sizeof *product);
    *product = (struct product){.compute = compute, .scale = scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    *made = (cublasLtMatmulDesc_t)(void *)product;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    free((void *)product);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t size) {
    struct product *product = (struct product *)(void *)of;
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA: memcpy(&product->on_a, value, size); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: memcpy(&product->on_b, value, size); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: memcpy(&product->epilogue, value, size); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: memcpy(&product->bias, value, size); break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: memcpy(&product->bias_type, value, size); break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: memcpy(&product->a_scales, value, size); break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: memcpy(&product->b_scales, value, size); break;
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER: memcpy(&product->d_scales, value, size); break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: memcpy(&product->a_mode, value, size); break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: memcpy(&product->b_mode, value, size); break;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    struct layout *layout = calloc(1, sizeof *layout);
    *layout = (struct layout){type, rows, columns, leading, 0, 1};
    *made = (cublasLtMatrixLayout_t)(void *)layout;
    return (uint64_t)leading < rows ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    free((void *)layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t name, const void *value,
                                                size_t size) {
    struct layout *layout = (struct layout *)(void *)of;
    if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof layout->batch)
        memcpy(&layout->batch, value, size);
    else if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof layout->stride)
        memcpy(&layout->stride, value, size);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
    struct preference *preference = malloc(sizeof *preference);
    *preference = (struct preference){{256, 256, 256, 256}};
    *made = (cublasLtMatmulPreference_t)(void *)preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    free((void *)preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t size) {
    struct preference *preference = (struct preference *)(void *)of;
    int operand = (int)name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (operand >= 0 && operand < 4 && size == sizeof(uint32_t)) {
        memcpy(&preference->alignments[operand], value, size);
        return CUBLAS_STATUS_SUCCESS;
    }
    return name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == sizeof(size_t)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}

// Blocks of 128 are supported on SM 9.0, but not 128 x 128 for both operands; those of 16 and of 32 from
// SM 10.0 on.
static bool takes_scales(const struct product *product) {
    int a = product->a_mode, b = product->b_mode, sm = stand_in_number("sm", 0, 90);
    if (a == SCALAR || a == OUTER) return a == b;
    if (a == SMALL || a == SMALLEST) return a == b && sm >= 100;
    return sm == 90 && (a == VECTOR || (a == SQUARE && b != SQUARE)) && (b == VECTOR || b == SQUARE);
}

static bool has_8_bits(cudaDataType type) {
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static bool has_4_bits(cudaDataType type) {
    return type == CUDA_R_4F_E2M1;
}

// The table of types of products of 8 bits. One of the operands has to be E4M3. If the result has 8 bits, C
// has 16, and the result is E5M2 only if an operand is; else C has the result's type. A bias is of C's type,
// but beside float32 it is bfloat16.
static bool takes_types_of_8_bits(const struct product *product, cudaDataType a, cudaDataType b,
                                  cudaDataType c, cudaDataType d) {
    bool has_e5m2 = a == CUDA_R_8F_E5M2 || b == CUDA_R_8F_E5M2;
    bool is_wide = c == CUDA_R_16BF || c == CUDA_R_16F || c == CUDA_R_32F;
    cudaDataType bias = c == CUDA_R_32F ? CUDA_R_16BF : c;
    if (product->compute != CUBLAS_COMPUTE_32F || product->scale != CUDA_R_32F) return false;
    if (!has_8_bits(a) || !has_8_bits(b) || (a == CUDA_R_8F_E5M2 && b == a) || !is_wide) return false;
    if (has_8_bits(d) && (c == CUDA_R_32F || (d == CUDA_R_8F_E5M2 && !has_e5m2))) return false;
    if (!has_8_bits(d) && c != d) return false;
    return product->epilogue != CUBLASLT_EPILOGUE_BIAS || product->bias_type == bias;
}

// Only operands of 8 bits have scales. Results of 8 bits are supported with scales of whole operands alone
// (blocks of 32 need scales of the result's blocks, too, which no caller here gives), and only they have a
// scale of their own.
static bool takes_types(const struct product *product, cudaDataType a, cudaDataType b, cudaDataType c,
                        cudaDataType d) {
    bool has_scales = product->a_scales != NULL || product->b_scales != NULL;
    bool is_wide = c == CUDA_R_16BF || c == CUDA_R_16F || c == CUDA_R_32F;
    if (has_4_bits(a) || has_4_bits(b))
        return a == b && product->a_mode == SMALLEST && c == d && is_wide && product->d_scales == NULL;
    if (product->a_mode == SMALLEST) return false;
    if (product->d_scales != NULL && !has_8_bits(d)) return false;
    if (has_8_bits(d) && (product->a_mode != SCALAR || product->b_mode != SCALAR)) return false;
    if (has_8_bits(a) || has_8_bits(b) || has_8_bits(d)) return takes_types_of_8_bits(product, a, b, c, d);
    return !has_scales && c == d && (product->epilogue != CUBLASLT_EPILOGUE_BIAS || product->bias_type == d);
}

// Of one element; of two that share a byte.
static int64_t bytes_of(cudaDataType type) {
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : has_8_bits(type) || has_4_bits(type) ? 1 : 2;
}

// In products of 8 and 4 bits each column begins at a multiple of 16 bytes.
static bool has_columns_of_16_bytes(const struct layout *layout) {
    return layout->leading * bytes_of(layout->type) % (has_4_bits(layout->type) ? 32 : 16) == 0;
}

// Products of 8 bits are supported with only the first operand transposed, as in the real library.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t of,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
    (void)handle;
    const struct preference *told = (const struct preference *)(void *)preference;
    const struct product *product = (const struct product *)(void *)of;
    const cublasLtMatrixLayout_t handles[] = {a, b, c, d};
    const struct layout *layouts[4];
    bool are_aligned = true;
    for (int i = 0; i < 4; i++) {
        layouts[i] = (const struct layout *)(void *)handles[i];
        are_aligned = are_aligned && has_columns_of_16_bytes(layouts[i]);
    }
    bool has_form = are_aligned && product->on_a == CUBLAS_OP_T && product->on_b == CUBLAS_OP_N;
    *count = 0;
    if (stand_in_number("refuses", 0, 0) != 0 || !takes_scales(product) ||
        !takes_types(product, layouts[0]->type, layouts[1]->type, layouts[2]->type, layouts[3]->type) ||
        ((has_8_bits(layouts[0]->type) || has_4_bits(layouts[0]->type)) && !has_form))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < most && (i == 0 || stand_in_number("algorithms_us", i, -1) >= 0); i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].algo.data[0] = (uint64_t)i;
        memcpy(&results[i].algo.data[1], told->alignments, sizeof told->alignments);
        results[i].state =
            stand_in_number("broken", 0, -1) == i ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
        *count = i + 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name, void *value,
                                                    size_t size, size_t *written) {
    uint32_t number = name == CUBLASLT_ALGO_CONFIG_ID ? (uint32_t)algorithm->data[0] + 60 : 1;
    if (size != sizeof number) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &number, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

// ---- calls ----------------------------------------------------------------------------------------------

static enum data_type type_of(cudaDataType_t type) {
    return type == CUDA_R_64F       ? FLOAT64
           : type == CUDA_R_16BF    ? BFLOAT16
           : type == CUDA_R_16F     ? FLOAT16
           : type == CUDA_R_8F_E4M3 ? FLOAT8_E4M3FN
           : type == CUDA_R_8F_E5M2 ? FLOAT8_E5M2
           : type == CUDA_R_4F_E2M1 ? FLOAT4_E2M1FN_X2
                                    : FLOAT32;
}

static struct tensor tensor_of(cudaDataType_t type, const void *data) {
    return (struct tensor){.type = type_of(type), .data = (void *)(uintptr_t)data};
}

static double value_at(cudaDataType_t type, const void *data, int64_t index) {
    const struct tensor tensor = tensor_of(type, data);
    return tensor_value(&tensor, (size_t)index);
}

// The code of 8 bits that a value is rounded to: the nearest one, the even one of two, the largest one if the
// value is beyond it.
static uint8_t nearest_code(cudaDataType_t type, double value) {
    const unsigned codes = type == CUDA_R_8F_E4M3 ? 0x7F : 0x7C; // those of finite positive numbers
    unsigned best = 0;
    double least = INFINITY;
    for (unsigned code = 0; code < codes; code++) {
        uint8_t byte = (uint8_t)code;
        double distance = fabs(value_at(type, &byte, 0) - fabs(value));
        if (distance < least || (distance <= least && code % 2 == 0)) best = code;
        least = fmin(least, distance);
    }
    return (uint8_t)(signbit(value) ? best | 0x80 : best);
}

static void store_at(cudaDataType_t type, void *data, int64_t index, double value) {
    if (has_8_bits(type)) {
        ((uint8_t *)data)[index] = nearest_code(type, value);
        return;
    }
    int bytes = type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
    stand_in_store(bytes, type == CUDA_R_16BF, data, (size_t)index, value);
}

// A matrix of a batch, column after column; the caller frees it.
static double *matrix_of(const struct layout *layout, const void *data, int64_t batch) {
    const struct tensor tensor = tensor_of(layout->type, data);
    double *matrix = malloc(layout->rows * layout->columns * sizeof *matrix);
    for (uint64_t column = 0; column < layout->columns; column++) {
        int64_t from = batch * layout->stride + (int64_t)column * layout->leading;
        tensor_load(&tensor, (size_t)from, 1, layout->rows, matrix + column * layout->rows);
    }
    return matrix;
}

// The product of two matrices, column after column. With OpenBLAS if it is installed, because a step of a
// workload has billions of multiplications; it gets the transposes, because columns are its rows.
static void add_up(const struct task *at, const double *a, const double *b, double *sums) {
    static struct blas blas;
    static bool is_asked;
    char reason[160];
    bool a_lies = at->product.on_a == CUBLAS_OP_N, b_lies = at->product.on_b == CUBLAS_OP_N;
    size_t m = at->d.rows, n = at->d.columns, k = a_lies ? at->a.columns : at->a.rows;
    if (!is_asked && blas_open(&blas, 1, reason, sizeof reason) != 0) blas.dgemm = NULL;
    is_asked = true;
    if (blas.dgemm != NULL) {
        blas.dgemm(BLAS_ROW_MAJOR, b_lies ? BLAS_NO_TRANS : BLAS_TRANS, a_lies ? BLAS_NO_TRANS : BLAS_TRANS,
                   (int)n, (int)m, (int)k, 1, b, (int)at->b.rows, a, (int)at->a.rows, 0, sums, (int)m);
        return;
    }
    memset(sums, 0, m * n * sizeof *sums);
    for (size_t j = 0; j < n; j++) {
        for (size_t l = 0; l < k; l++) {
            double factor = b[b_lies ? j * at->b.rows + l : l * at->b.rows + j];
            for (size_t i = 0; i < m; i++)
                sums[j * m + i] += factor * a[a_lies ? l * at->a.rows + i : i * at->a.rows + l];
        }
    }
}

static int64_t ratio_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// The scale of element k of a row of an operand with `rows` rows of `length` elements. "Scaling factors
// layouts" in the documentation of cuBLAS has the positions of scales.
static double scale_at(int32_t mode, const void *scales, int64_t rows, int64_t length, int64_t row,
                       int64_t k) {
    const float *factors = scales;
    const uint8_t *codes = scales;
    bool is_wrong = stand_in_number("scale_order", 0, 0) != 0;
    int64_t blocks = ratio_up(length, 128), each = mode == SMALL ? 32 : 16, block = k / each;
    int64_t tiles = ratio_up(ratio_up(length, each), 4), square = ratio_up(blocks, 4) * 4;
    int64_t place = (row / 128 * tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
    if (is_wrong) place = row * tiles * 4 + block; // row after row
    switch (mode) {
    case OUTER: return (double)factors[is_wrong ? rows - 1 - row : row];
    case VECTOR: return (double)factors[is_wrong ? row * blocks + k / 128 : k / 128 * rows + row];
    case SQUARE:
        return (double)factors[is_wrong ? row / 128 * blocks + k / 128 : row / 128 * square + k / 128];
    case SMALL: return ldexp(1, codes[place] - 127);
    case SMALLEST: return value_at(CUDA_R_8F_E4M3, codes, place);
    default: return (double)factors[0];
    }
}

// Multiplies an operand by its scales, if it has any. Scales are by rows of length K. `is_along_rows`: these
// are the columns of the matrix in memory, as in a transposed first operand and in a plain second one.
static void scale(double *matrix, const struct layout *layout, bool is_along_rows, int32_t mode,
                  const void *scales) {
    int64_t rows = (int64_t)layout->rows, columns = (int64_t)layout->columns;
    for (int64_t place = 0; scales != NULL && place < rows * columns; place++) {
        int64_t row = place / rows, k = place % rows;
        matrix[place] *= is_along_rows ? scale_at(mode, scales, columns, rows, row, k)
                                       : scale_at(mode, scales, rows, columns, k, row);
    }
}

static void multiply_one(const struct task *at, int64_t batch) {
    const struct product *product = &at->product;
    int64_t m = (int64_t)at->d.rows, n = (int64_t)at->d.columns;
    double *a = matrix_of(&at->a, at->a_data, batch), *b = matrix_of(&at->b, at->b_data, batch);
    double *sums = malloc((size_t)(m * n) * sizeof *sums);
    scale(a, &at->a, product->on_a == CUBLAS_OP_T, product->a_mode, product->a_scales);
    scale(b, &at->b, product->on_b == CUBLAS_OP_N, product->b_mode, product->b_scales);
    add_up(at, a, b, sums);
    if (batch == 0 && stand_in_number("wrong", 0, -1) == at->algorithm) sums[0] += 1;
    for (int64_t place = 0; place < m * n; place++) {
        int64_t j = place / m, i = place % m, c_place = batch * at->d.stride + j * at->d.leading + i;
        double sum = sums[place] * at->alpha;
        if (at->beta < 0 || at->beta > 0) sum += at->beta * value_at(at->c.type, at->c_data, c_place);
        if (product->epilogue == CUBLASLT_EPILOGUE_BIAS)
            sum += value_at(product->bias_type, product->bias, i);
        if (product->d_scales != NULL) sum *= (double)*(const float *)product->d_scales;
        store_at(at->d.type, at->d_data, c_place, sum);
    }
    free(a);
    free(b);
    free(sums);
}

static void multiply(void **arguments, int count) {
    (void)count;
    static bool is_loaded;
    struct task *at = arguments[0];
    for (int64_t batch = 0; batch < at->d.batch; batch++) multiply_one(at, batch);
    if (stand_in_number("illegal", 0, -1) == (int)at->d.columns) stand_in_break();
    if (!is_loaded) stand_in_pass((float)stand_in_number("load_ms", 0, 0));
    is_loaded = true;
    stand_in_pass((float)stand_in_number("algorithms_us", at->algorithm, 5) / 1000);
    free(at);
}

static struct layout layout_of(cublasLtMatrixLayout_t layout) {
    return *(const struct layout *)(void *)layout;
}

// Whether the operands have the alignments that the caller gave when it requested the algorithm.
static bool is_aligned(const cublasLtMatmulAlgo_t *algorithm, const void *const operands[4]) {
    uint32_t alignments[4];
    if (algorithm == NULL) return true;
    memcpy(alignments, &algorithm->data[1], sizeof alignments);
    for (int i = 0; i < 4; i++) {
        if (alignments[i] == 0 || (uintptr_t)operands[i] % alignments[i] != 0) return false;
    }
    return true;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t of, const void *alpha,
                              const void *a_data, cublasLtMatrixLayout_t a, const void *b_data,
                              cublasLtMatrixLayout_t b, const void *beta, const void *c_data,
                              cublasLtMatrixLayout_t c, void *d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream) {
    (void)handle;
    (void)workspace;
    (void)bytes;
    const void *const operands[4] = {a_data, b_data, c_data, d_data};
    if (!is_aligned(algorithm, operands)) return CUBLAS_STATUS_INVALID_VALUE;
    // C and D are one matrix only with one layout.
    if (c_data == d_data && layout_of(c).type != layout_of(d).type) return CUBLAS_STATUS_INVALID_VALUE;
    struct task *task = malloc(sizeof *task);
    *task = (struct task){.product = *(const struct product *)(void *)of,
                          .a = layout_of(a),
                          .b = layout_of(b),
                          .c = layout_of(c),
                          .d = layout_of(d),
                          .a_data = a_data,
                          .b_data = b_data,
                          .c_data = c_data,
                          .d_data = d_data,
                          .algorithm = algorithm != NULL ? (int)algorithm->data[0] : 0};
    bool is_double = task->product.scale == CUDA_R_64F;
    task->alpha = is_double ? *(const double *)alpha : (double)*(const float *)alpha;
    task->beta = is_double ? *(const double *)beta : (double)*(const float *)beta;
    stand_in_meet((struct CUstream_st *)stream, 1, multiply, task);
    return CUBLAS_STATUS_SUCCESS;
}
