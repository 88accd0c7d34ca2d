// Matrix products by cuBLASLt. Its matrices are column-major, so that it reads row-major operands as
// transposed ones, and computes out^T = B^T * A^T: A and B are exchanged. Its own choice is the first
// algorithm of its heuristic for these sizes and this workspace; the others can be chosen, too.
#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "replay/math_library.h"
#include "replay/scales.h"

enum { MOST_ALGORITHMS = 32 };

#define CUBLASLT_FUNCTIONS(X)                                                                                \
    X(cublasLtCreate)                                                                                        \
    X(cublasLtGetVersion)                                                                                    \
    X(cublasLtGetStatusName)                                                                                 \
    X(cublasLtMatmul)                                                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                        \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                                  \
    X(cublasLtMatmulDescCreate)                                                                              \
    X(cublasLtMatmulDescDestroy)                                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                                        \
    X(cublasLtMatrixLayoutCreate)                                                                            \
    X(cublasLtMatrixLayoutDestroy)                                                                           \
    X(cublasLtMatrixLayoutSetAttribute)                                                                      \
    X(cublasLtMatmulPreferenceCreate)                                                                        \
    X(cublasLtMatmulPreferenceDestroy)                                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)

static struct {
    CUBLASLT_FUNCTIONS(FUNCTION_MEMBER)
    cublasLtHandle_t handle;
} lt;

int cublaslt_load(char reason[], size_t reason_size) {
    char name[32];
    snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    const struct gpu_library wanted = {"GENTABLES_CUBLASLT", name, "cuBLASLt",
                                       FUNCTION_NAMES(CUBLASLT_FUNCTIONS), &lt};
    return gpu_load(&wanted, reason, reason_size);
}

static int open_library(int threads, char reason[REASON_SIZE]) {
    (void)threads;
    if (cublaslt_load(reason, REASON_SIZE) != 0) return -1;
    cublasStatus_t status = lt.cublasLtCreate(&lt.handle);
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    snprintf(reason, REASON_SIZE, "cuBLASLt does not start: %s", lt.cublasLtGetStatusName(status));
    return -1;
}

static void describe(char text[], size_t size) {
    snprintf(text, size, "version=%zu workspace_mib=%d", lt.cublasLtGetVersion(), WORKSPACE_BYTES >> 20);
}

// ---- a call ---------------------------------------------------------------------------------------------

struct state {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c, d; // column-major; d is that of the result
    cublasLtMatmulHeuristicResult_t algorithms[MOST_ALGORITHMS];
    int count, chosen;
    const void *a_data, *b_data, *c_data;
    void *out_data;
    CUdeviceptr a_scales, b_scales; // of the op's A and B; 0: gpu.one
    union {
        float single;
        double full;
    } alpha, beta;
};

static int run(void *state) {
    struct state *at = state;
    cublasStatus_t status =
        lt.cublasLtMatmul(lt.handle, at->product, &at->alpha, at->a_data, at->a, at->b_data, at->b, &at->beta,
                          at->c_data, at->c, at->out_data, at->d, &at->algorithms[at->chosen].algo,
                          (void *)(uintptr_t)gpu.workspace, WORKSPACE_BYTES, (cudaStream_t)gpu.stream);
    return status == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

static int choose(void *state, int algorithm) {
    struct state *at = state;
    if (algorithm < 0 || algorithm >= at->count) return -1;
    at->chosen = algorithm;
    return 0;
}

static void end(void *state) {
    struct state *at = state;
    if (at->a != NULL) lt.cublasLtMatrixLayoutDestroy(at->a);
    if (at->b != NULL) lt.cublasLtMatrixLayoutDestroy(at->b);
    if (at->c != NULL) lt.cublasLtMatrixLayoutDestroy(at->c);
    if (at->d != NULL) lt.cublasLtMatrixLayoutDestroy(at->d);
    if (at->product != NULL) lt.cublasLtMatmulDescDestroy(at->product);
    if (at->a_scales != 0) gpu.driver->cuMemFree(at->a_scales);
    if (at->b_scales != 0) gpu.driver->cuMemFree(at->b_scales);
    free(at);
}

// ---- descriptions ---------------------------------------------------------------------------------------

static cudaDataType_t type_of(enum data_type type) {
    static const cudaDataType_t types[] = {
        [FLOAT32] = CUDA_R_32F,
        [FLOAT64] = CUDA_R_64F,
        [BFLOAT16] = CUDA_R_16BF,
        [FLOAT16] = CUDA_R_16F,
        [FLOAT8_E4M3FN] = CUDA_R_8F_E4M3,
        [FLOAT8_E5M2] = CUDA_R_8F_E5M2,
#if CUBLAS_VERSION >= 120900
        [FLOAT4_E2M1FN_X2] = CUDA_R_4F_E2M1,
#endif
    };
    return types[type];
}

static bool made_layout(cublasLtMatrixLayout_t *layout, enum data_type type, int64_t rows, int64_t columns,
                        int64_t leading, int64_t batch, int64_t stride) {
    int32_t count = (int32_t)batch;
    return lt.cublasLtMatrixLayoutCreate(layout, type_of(type), (uint64_t)rows, (uint64_t)columns, leading) ==
               CUBLAS_STATUS_SUCCESS &&
           lt.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                               sizeof count) == CUBLAS_STATUS_SUCCESS &&
           lt.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                               sizeof stride) == CUBLAS_STATUS_SUCCESS;
}

static bool set(struct state *at, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size) {
    return lt.cublasLtMatmulDescSetAttribute(at->product, attribute, value, size) == CUBLAS_STATUS_SUCCESS;
}

// C has the type of the result. But beside a result in float8, C is a matrix in float16 or bfloat16, even if
// nothing is added ("Supported data types" of cublasLtMatmul()).
static enum data_type type_of_c(const struct gemm *gemm, enum data_type out) {
    return is_float8(out) ? gemm->addend_type : out;
}

// The epilogue adds a row.
static bool set_bias(struct state *at, const struct operands *operands) {
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    cudaDataType_t type = type_of(operands->c.type);
    return set(at, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           set(at, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands->c.data, sizeof operands->c.data) &&
           set(at, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
}

// ---- scales ---------------------------------------------------------------------------------------------

static int64_t ratio_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// The scales of an operand of `rows`, as cuBLASLt lays them out ("Scaling factors layouts"): floats for each
// row and, row after row, each 128 of K; or for each 128 rows and 128 of K, these padded to four; or bytes in
// whole tiles of 128 rows and four blocks of K, in which every 32nd row is beside the others.
struct scale_memory {
    const struct scales *scales;
    enum block block; // BLOCK_UNKNOWN: a scale for each row
    int64_t rows, blocks, row_blocks;
    size_t width;  // of a scale
    int64_t count; // of one product
};

static struct scale_memory memory_of(const struct gemm *gemm, const struct scales *scales, enum block block,
                                     int64_t rows) {
    bool is_row = gemm->scaling == SCALE_ROW, is_small_block = block == BLOCK_1X32 || block == BLOCK_1X16;
    struct scale_memory memory = {.scales = scales,
                                  .block = is_row ? BLOCK_UNKNOWN : block,
                                  .rows = rows,
                                  .blocks = is_row ? 1 : ratio_up(gemm->k, 1 << scales->k_bits),
                                  .row_blocks = ratio_up(rows, 1 << scales->row_bits),
                                  .width = is_small_block && !is_row ? 1 : sizeof(float)};
    memory.count = memory.row_blocks * memory.blocks;
    if (memory.block == BLOCK_128X128) memory.count = memory.row_blocks * ratio_up(memory.blocks, 4) * 4;
    if (memory.width == 1) memory.count = ratio_up(rows, 128) * 128 * ratio_up(memory.blocks, 4) * 4;
    return memory;
}

static int64_t position_of(const struct scale_memory *memory, int64_t row, int64_t block) {
    enum { ROWS = 128, BANDS = 32, ACROSS = 4 };
    int64_t tiles = ratio_up(memory->blocks, ACROSS);
    if (memory->block == BLOCK_128X128) return row * tiles * ACROSS + block;
    if (memory->width > 1) return block * memory->rows + row;
    int64_t tile = row / ROWS * tiles + block / ACROSS, in_band = row % BANDS, band = row % ROWS / BANDS;
    return ((tile * BANDS + in_band) * ACROSS + band) * ACROSS + block % ACROSS;
}

static void store_scale(const struct scale_memory *memory, int exponent, void *to, int64_t position) {
    enum { E8M0_ONE = 0x7F, E4M3_ONE = 0x38, E4M3_STEP = 8 }; // STEP: one in the exponent
    if (memory->width > 1)
        ((float *)to)[position] = (float)(exponent + 1);
    else
        ((uint8_t *)to)[position] =
            (uint8_t)(memory->block == BLOCK_1X32 ? E8M0_ONE + exponent : E4M3_ONE + E4M3_STEP * exponent);
}

// Those beyond the operand are 1.
static void fill_scales(const struct scale_memory *memory, int64_t batch, char *to) {
    size_t bytes = memory->width * (size_t)memory->count;
    for (int64_t i = 0; i < memory->count; i++) store_scale(memory, 0, to, i);
    for (int64_t row = 0; row < memory->row_blocks; row++) {
        for (int64_t block = 0; block < memory->blocks; block++)
            store_scale(memory, scale_exponent(memory->scales, (uint64_t)row, (uint64_t)block), to,
                        position_of(memory, row, block));
    }
    for (int64_t i = 1; i < batch; i++) memcpy(to + (size_t)i * bytes, to, bytes); // the same for all
}

// Copies the scales of an operand to the GPU. -1, with a reason.
static int load_scales(const struct gemm *gemm, const struct scale_memory *memory, CUdeviceptr *to,
                       char reason[REASON_SIZE]) {
    size_t bytes = memory->width * (size_t)memory->count * (size_t)gemm->batch;
    char *data = malloc(bytes);
    if (data == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    fill_scales(memory, gemm->batch, data);
    CUresult result = gpu.driver->cuMemAlloc(to, bytes);
    if (result == CUDA_SUCCESS) result = gpu.driver->cuMemcpyHtoDAsync(*to, data, bytes, gpu.stream);
    bool is_done =
        driver_ok(gpu.driver, result, "scales", reason, REASON_SIZE) && gpu_finish(reason); // `data` was read
    free(data);
    return is_done ? 0 : -1;
}

// Scales of rows or blocks, in memory of their own. -1, with a reason.
static int make_scales(struct state *at, const struct gemm *gemm, const struct operands *operands,
                       char reason[REASON_SIZE]) {
    struct scales a = scales_of_a(gemm, operands->a.type), b = scales_of_b(gemm, operands->b.type);
    if (!a.are_there || !b.are_there) return 0;
    const struct scale_memory of_a = memory_of(gemm, &a, gemm->block_a, gemm->m);
    const struct scale_memory of_b = memory_of(gemm, &b, gemm->block_b, gemm->n);
    return load_scales(gemm, &of_a, &at->a_scales, reason) == 0 &&
                   load_scales(gemm, &of_b, &at->b_scales, reason) == 0
               ? 0
               : -1;
}

#if CUBLAS_VERSION >= 120900
static bool set_modes(struct state *at, const struct gemm *gemm) {
    static const int32_t modes[BLOCKS] = {[BLOCK_1X128] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                                          [BLOCK_128X128] = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                                          [BLOCK_1X32] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0,
                                          [BLOCK_1X16] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3};
    int32_t of_a = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, of_b = of_a;
    if (gemm->scaling == SCALE_TENSOR) return true;
    if (gemm->scaling == SCALE_BLOCK) {
        of_a = modes[gemm->block_a];
        of_b = modes[gemm->block_b];
    }
    return set(at, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &of_b, sizeof of_b) &&
           set(at, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &of_a, sizeof of_a);
}
#else
static bool set_modes(struct state *at, const struct gemm *gemm) {
    (void)at;
    return gemm->scaling == SCALE_TENSOR;
}
#endif

static bool set_scales(struct state *at, const struct gemm *gemm) {
    int8_t fast = gemm->fast_accumulation;
    const CUdeviceptr *a = at->a_scales != 0 ? &at->a_scales : &gpu.one;
    const CUdeviceptr *b = at->b_scales != 0 ? &at->b_scales : &gpu.one;
    return set(at, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b, sizeof *b) &&
           set(at, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a, sizeof *a) &&
           (!gemm->scales_out || set(at, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, &gpu.one, sizeof gpu.one)) &&
           set(at, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast) && set_modes(at, gemm);
}

// ---- algorithms -----------------------------------------------------------------------------------------

static bool described(struct state *at, const struct gemm *gemm, const struct operands *operands) {
    bool is_double = operands->a.type == FLOAT64;
    cublasOperation_t on_a = gemm->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t on_b = gemm->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    return lt.cublasLtMatmulDescCreate(&at->product, is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                       is_double ? CUDA_R_64F : CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(at, CUBLASLT_MATMUL_DESC_TRANSA, &on_a, sizeof on_a) &&
           set(at, CUBLASLT_MATMUL_DESC_TRANSB, &on_b, sizeof on_b) &&
           (gemm->addend != ADD_ROW || set_bias(at, operands)) &&
           (gemm->scaling == SCALE_NOTHING || set_scales(at, gemm)) &&
           made_layout(&at->a, operands->b.type, gemm->trans_b ? k : n, gemm->trans_b ? n : k, gemm->ldb,
                       gemm->batch, gemm->stride_b) &&
           made_layout(&at->b, operands->a.type, gemm->trans_a ? m : k, gemm->trans_a ? k : m, gemm->lda,
                       gemm->batch, gemm->stride_a) &&
           made_layout(&at->c, type_of_c(gemm, operands->out.type), n, m, n, gemm->batch, m * n) &&
           made_layout(&at->d, operands->out.type, n, m, n, gemm->batch, m * n);
}

// By default cuBLASLt assumes operands at multiples of 256 bytes. Those of a workload are parts of messages,
// at any offset.
static cublasStatus_t prefer_alignment(cublasLtMatmulPreference_t preference,
                                       cublasLtMatmulPreferenceAttributes_t attribute, const void *data) {
    enum { MOST = 256 };
    uintptr_t address = (uintptr_t)data | MOST;
    uint32_t alignment = (uint32_t)(address & -address); // the lowest bit
    return lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof alignment);
}

static cublasStatus_t prefer(const struct state *at, cublasLtMatmulPreference_t preference) {
    size_t bytes = WORKSPACE_BYTES;
    cublasStatus_t status = lt.cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = prefer_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, at->a_data);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = prefer_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, at->b_data);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = prefer_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, at->c_data);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = prefer_alignment(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, at->out_data);
    return status;
}

// The algorithms of the heuristic, without those that the library then rejects.
static cublasStatus_t ask(struct state *at) {
    cublasLtMatmulPreference_t preference;
    int found = 0;
    cublasStatus_t status = lt.cublasLtMatmulPreferenceCreate(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = prefer(at, preference);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt.cublasLtMatmulAlgoGetHeuristic(lt.handle, at->product, at->a, at->b, at->c, at->d,
                                                   preference, MOST_ALGORITHMS, at->algorithms, &found);
    lt.cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < found && status == CUBLAS_STATUS_SUCCESS; i++) {
        if (at->algorithms[i].state == CUBLAS_STATUS_SUCCESS) at->algorithms[at->count++] = at->algorithms[i];
    }
    return status == CUBLAS_STATUS_SUCCESS && at->count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

// ---- preparing ------------------------------------------------------------------------------------------

static void set_data(struct state *at, const struct gemm *gemm, const struct operands *operands) {
    double alpha = gemm->alpha, beta = gemm->addend == ADD_MATRIX ? gemm->beta : 0;
    at->a_data = operands->b.data;
    at->b_data = operands->a.data;
    at->out_data = operands->out.data;
    // C and D may be one matrix if they have one layout.
    bool has_one_layout = type_of_c(gemm, operands->out.type) == operands->out.type;
    at->c_data = gemm->addend == ADD_MATRIX ? operands->c.data : has_one_layout ? operands->out.data : NULL;
    if (operands->a.type == FLOAT64) {
        at->alpha.full = alpha;
        at->beta.full = beta;
    } else {
        at->alpha.single = (float)alpha;
        at->beta.single = (float)beta;
    }
}

// Why cuBLASLt cannot compute an op, or NULL.
static const char *refusal_of(const struct op *op) {
    const struct gemm *gemm = &op->gemm;
    if (gemm->scaling == SCALE_BLOCK && (gemm->block_a == BLOCK_UNKNOWN || gemm->block_b == BLOCK_UNKNOWN))
        return "the trace does not show which elements of A or of B share a scale (1x128, 128x128, 1x32, "
               "1x16)";
#if CUBLAS_VERSION < 120900
    if (gemm->scaling == SCALE_ROW) return "built with a cuBLASLt without scales of rows (12.9 has them)";
    if (gemm->scaling == SCALE_BLOCK) return "built with a cuBLASLt without scales of blocks (12.9 has them)";
    if (is_float4(op->type)) return "built with a cuBLASLt without elements of 4 bits (12.9 has them)";
#endif
    if (gemm->addend == ADD_ROW && (gemm->beta < 1 || gemm->beta > 1))
        return "cuBLASLt adds a row as it is, not a multiple of it";
    if (gemm->scaling != SCALE_NOTHING && (library_cublaslt.types >> gemm->out_type & 1) == 0)
        return "cuBLASLt does not have the result's type";
    if (gemm->batch > INT32_MAX) return "cuBLASLt counts batches in 32 bits";
    return NULL;
}

static void name_kernel(const struct state *at, struct prepared_op *prepared) {
    static const cublasLtMatmulAlgoConfigAttributes_t attributes[] = {
        CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID};
    uint32_t values[] = {0, 0, 0};
    size_t written;
    for (int i = 0; i < 3; i++)
        lt.cublasLtMatmulAlgoConfigGetAttribute(&at->algorithms[0].algo, attributes[i], &values[i],
                                                sizeof values[i], &written);
    snprintf(prepared->kernel, sizeof prepared->kernel, "algorithm_%u_tile_%u_stages_%u", values[0],
             values[1], values[2]);
}

static int prepare(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]) {
    const char *refusal = refusal_of(op);
    struct state *at = refusal == NULL ? calloc(1, sizeof *at) : NULL;
    if (at == NULL) {
        snprintf(reason, REASON_SIZE, "%s", refusal != NULL ? refusal : "out of memory");
        return -1;
    }
    set_data(at, &op->gemm, operands);
    if (make_scales(at, &op->gemm, operands, reason) != 0) {
        end(at);
        return -1;
    }
    cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
    if (described(at, &op->gemm, operands)) status = ask(at);
    if (status != CUBLAS_STATUS_SUCCESS) {
        snprintf(reason, REASON_SIZE, "cuBLASLt does not compute this (%s)",
                 lt.cublasLtGetStatusName(status));
        end(at);
        return -1;
    }
    *prepared =
        (struct prepared_op){.run = run, .end = end, .state = at, .algorithms = at->count, .choose = choose};
    name_kernel(at, prepared);
    return 0;
}

const struct library library_cublaslt = {
    .name = "cublaslt",
    .kinds = 1 << OP_GEMM,
    .types = 1 << FLOAT32 | 1 << FLOAT64 | 1 << BFLOAT16 | 1 << FLOAT16 | 1 << FLOAT8_E4M3FN |
             1 << FLOAT8_E5M2 | 1 << FLOAT4_E2M1FN_X2,
    .open = open_library,
    .describe = describe,
    .prepare = prepare,
};
