// The check of results: right results pass for every data type, fusion and number of ranks; each planted
// fault is found.
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "../elements/isas.h"
#include "calls/cell.h"
#include "calls/cell_check.h"
#include "calls/check_kernels.h"
#include "elements/element.h"
#include "elements/values.h"
#include "host/epilogue.h"

enum { SEED = 11 };

// Does the work of all ranks of one call, in one process; rank 0's cell gets the results.
struct ranks {
    struct cell cells[MAX_NODE_RANKS];
    int count;
};

static struct shape shape_of(enum dtype dtype, enum fusion fusion, size_t num_tokens, size_t hidden_size) {
    return (struct shape){
        .dtype = dtype, .fusion = fusion, .num_tokens = num_tokens, .hidden_size = hidden_size};
}

static void open_ranks(struct ranks *ranks, int count, struct shape shape) {
    ranks->count = count;
    for (int rank = 0; rank < count; rank++)
        assert_int_equal(cell_open(&ranks->cells[rank], &shape, rank, count, SEED), 0);
}

static void close_ranks(struct ranks *ranks) {
    for (int rank = 0; rank < ranks->count; rank++) cell_close(&ranks->cells[rank]);
}

static const struct kernels *tested; // NULL: the best

static void run_with(struct ranks *ranks, size_t data_set, int sources_used) {
    const void *sources[MAX_NODE_RANKS];
    struct call call = cell_call(&ranks->cells[0], data_set);
    struct epilogue epilogue;
    for (int rank = 0; rank < ranks->count; rank++)
        sources[rank] = cell_call(&ranks->cells[rank], data_set).input;
    cell_poison(&ranks->cells[0]);
    epilogue_begin(&epilogue, tested ? tested : kernels_best(), &call, 0);
    epilogue_consume(&epilogue, sources, sources_used, call_elements(&call));
}

static bool part_is_right(struct ranks *ranks, size_t data_set, struct cell_part part,
                          enum sum_rounding rounding, char what[160]) {
    check_kernel *check = check_kernel_like(tested ? tested : kernels_best());
    return check(&ranks->cells[0], data_set, part, rounding, what, 160);
}

static bool right(struct ranks *ranks, size_t data_set, enum sum_rounding rounding) {
    char what[160];
    return part_is_right(ranks, data_set, cell_part_of(&ranks->cells[0], 0, 1), rounding, what);
}

static void check_right_results(void) {
    const int counts[] = {2, 3, 4, 7, 8, 16};
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                struct ranks ranks;
                open_ranks(&ranks, counts[i], shape_of((enum dtype)dtype, (enum fusion)fusion, 5, 208));
                assert_true(ranks.cells[0].data_sets > 0);
                for (size_t data_set = 0; data_set < ranks.cells[0].data_sets; data_set++) {
                    char what[160];
                    struct cell_part all = cell_part_of(&ranks.cells[0], 0, 1);
                    run_with(&ranks, data_set, counts[i]);
                    if (!part_is_right(&ranks, data_set, all, SUM_FP32, what)) {
                        fail_msg("%s %s, %d ranks: %s", dtype_names[dtype], fusion_names[fusion], counts[i],
                                 what);
                    }
                }
                close_ranks(&ranks);
            }
        }
    }
}

static void check_with(const struct kernels *kernels) {
    tested = kernels;
    check_right_results();
    tested = NULL;
}

TEST(right_results_pass_with_every_instruction_set) {
    for_each_isa(check_with);
}

TEST(results_of_other_data_are_wrong) {
    for (int fusion = 0; fusion < FUSIONS; fusion++) {
        struct ranks ranks;
        open_ranks(&ranks, 2, shape_of(DTYPE_BFLOAT16, (enum fusion)fusion, 3, 64));
        run_with(&ranks, 0, 2);
        assert_true(right(&ranks, 0, SUM_FP32));
        assert_false(right(&ranks, 1, SUM_FP32));
        close_ranks(&ranks);
    }
}

TEST(a_rank_left_out_is_found) {
    for (int fusion = 0; fusion < FUSIONS; fusion++) {
        struct ranks ranks;
        open_ranks(&ranks, 16, shape_of(DTYPE_FLOAT16, (enum fusion)fusion, 3, 64));
        run_with(&ranks, 0, 15);
        assert_false(right(&ranks, 0, SUM_FP32));
        assert_false(right(&ranks, 0, SUM_NATIVE));
        close_ranks(&ranks);
    }
}

// Moves each result that is not exact by so many steps, past the sum.
static void move_past_sums(struct ranks *ranks, int steps) {
    struct call call = cell_call(&ranks->cells[0], 0);
    uint16_t *bits = call.out;
    for (size_t i = 0; i < call_elements(&call); i++) {
        double sum = cell_sum(&ranks->cells[0], 0, i), is = element_value(call.dtype, call.out, i);
        if (is == sum) continue;
        bits[i] = (uint16_t)(fabs(is) < fabs(sum) ? bits[i] + steps : bits[i] - steps);
    }
}

TEST(only_a_switch_may_round_to_either_neighbour) {
    for (enum dtype dtype = 0; dtype < DTYPES; dtype++) {
        struct ranks ranks;
        if (dtype_sizes_bytes[dtype] != 2) continue;
        open_ranks(&ranks, 4, shape_of(dtype, FUSION_NONE, 16, 256));
        run_with(&ranks, 0, 4);
        assert_true(right(&ranks, 0, SUM_FAITHFUL));
        move_past_sums(&ranks, 1);
        assert_true(right(&ranks, 0, SUM_FAITHFUL));
        assert_false(right(&ranks, 0, SUM_FP32));
        run_with(&ranks, 0, 4);
        move_past_sums(&ranks, 2);
        assert_false(right(&ranks, 0, SUM_FAITHFUL));
        close_ranks(&ranks);
    }
}

TEST(rounding_at_every_step_is_not_fp32_accumulation) {
    struct ranks ranks;
    struct shape shape = shape_of(DTYPE_BFLOAT16, FUSION_NONE, 16, 256);
    open_ranks(&ranks, 8, shape);
    struct call call = cell_call(&ranks.cells[0], 0);
    size_t count = call_elements(&call);
    memcpy(call.out, call.input, call_bytes(&call));
    for (int rank = 1; rank < 8; rank++) {
        const void *sources[2] = {call.out, cell_call(&ranks.cells[rank], 0).input};
        kernels_best()->sum[DTYPE_BFLOAT16][2](call.out, sources, 2, count);
    }
    assert_false(right(&ranks, 0, SUM_FP32));
    assert_false(right(&ranks, 0, SUM_FAITHFUL));
    assert_true(right(&ranks, 0, SUM_NATIVE));
    close_ranks(&ranks);
}

// Every single byte of a result is checked: here the last one and one in the middle are wrong.
TEST(a_single_wrong_element_is_found) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            struct ranks ranks;
            open_ranks(&ranks, 3, shape_of((enum dtype)dtype, (enum fusion)fusion, 3, 80));
            struct cell *cell = &ranks.cells[0];
            const size_t places[] = {cell->out_bytes - 1, cell->out_bytes / 2 + 1};
            for (size_t i = 0; i < 2; i++) {
                run_with(&ranks, 0, 3);
                cell->out[places[i]] ^= 0x60;
                assert_false(right(&ranks, 0, SUM_FP32));
            }
            if (fusion != FUSION_NONE) {
                run_with(&ranks, 0, 3);
                cell->residual_out[cell->residual_out_bytes - 1] ^= 0x40;
                assert_false(right(&ranks, 0, SUM_FP32));
            }
            if (fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4) {
                run_with(&ranks, 0, 3);
                cell->block_scales[block_scale_offset(2, 4, 80)] += 1;
                assert_false(right(&ranks, 0, SUM_FP32));
            }
            close_ranks(&ranks);
        }
    }
}

// An array of results, with its name in reports.
struct results {
    const char *name;
    unsigned char *data;
    size_t element_bits;
    bool is_of_dtype;
};

// Sets an element to NaN, or changes its largest bits.
static void spoil(const struct results *results, enum dtype dtype, size_t index, bool to_nan) {
    unsigned char *at = results->data + index * results->element_bits / 8;
    if (!results->is_of_dtype) {
        *at ^= results->element_bits == 8 ? 0x60 : (unsigned char)(index % 2 == 0 ? 0x06 : 0x60);
    } else if (to_nan) {
        element_store(dtype, at, 0, NAN);
    } else {
        at[results->element_bits / 8 - 1] ^= 0x60;
    }
}

// The report names the element, and only the part of the results that has it is wrong.
static void check_report(struct ranks *ranks, const struct results *results, size_t index) {
    enum { PARTS = 3 };
    char what[160], begin[64];
    snprintf(begin, sizeof begin, "wrong result: %s[%zu] is ", results->name, index);
    for (int i = 0; i < PARTS; i++) {
        struct cell_part part = cell_part_of(&ranks->cells[0], i, PARTS);
        bool has_it = index >= part.first && index < part.first + part.count;
        assert_int_equal(part_is_right(ranks, 0, part, SUM_FP32, what), !has_it);
        if (has_it && memcmp(what, begin, strlen(begin)) != 0) fail_msg("%s, not %s", what, begin);
    }
}

// Each row has whole spans of the check and a rest.
enum { LONG_ROWS = 5, LONG_ROW = 1040 };

static void check_spoilt(struct ranks *ranks, const struct results *results, enum dtype dtype) {
    const size_t places[] = {
        0, 511, 512, LONG_ROW - 1, LONG_ROW, 2 * LONG_ROW + 1023, LONG_ROWS * LONG_ROW - 1};
    size_t bytes = LONG_ROWS * LONG_ROW * results->element_bits / 8;
    unsigned char *kept = malloc(bytes);
    assert_non_null(kept);
    memcpy(kept, results->data, bytes);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (int to_nan = 0; to_nan < 1 + results->is_of_dtype; to_nan++) {
            spoil(results, dtype, places[i], to_nan != 0);
            check_report(ranks, results, places[i]);
            memcpy(results->data, kept, bytes);
        }
    }
    free(kept);
}

// The rounded norm that the fusions quantise: the result of the one that does not.
static void *norm_of(enum dtype dtype) {
    struct ranks ranks;
    open_ranks(&ranks, 2, shape_of(dtype, FUSION_RESIDUAL_RMS_NORM, LONG_ROWS, LONG_ROW));
    run_with(&ranks, 0, 2);
    void *norm = malloc(ranks.cells[0].out_bytes);
    assert_non_null(norm);
    memcpy(norm, ranks.cells[0].out, ranks.cells[0].out_bytes);
    close_ranks(&ranks);
    return norm;
}

static void check_every_array(const struct kernels *kernels) {
    tested = kernels;
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        void *norm = norm_of((enum dtype)dtype);
        size_t bits = 8 * dtype_sizes_bytes[dtype];
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            struct ranks ranks;
            unsigned code_bits = fusion_facts[fusion].code_bits;
            open_ranks(&ranks, 2, shape_of((enum dtype)dtype, (enum fusion)fusion, LONG_ROWS, LONG_ROW));
            run_with(&ranks, 0, 2);
            ranks.cells[0].norm_out = code_bits > 0 ? norm : NULL;
            assert_true(right(&ranks, 0, SUM_FP32));
            const struct results arrays[] = {
                {"out", ranks.cells[0].out, code_bits > 0 ? code_bits : bits, code_bits == 0},
                {"residual_out", ranks.cells[0].residual_out, bits, true},
                {"norm", ranks.cells[0].norm_out, bits, true}};
            for (int i = 0; i < 3; i++) {
                if (arrays[i].data != NULL) check_spoilt(&ranks, &arrays[i], (enum dtype)dtype);
            }
            close_ranks(&ranks);
        }
        free(norm);
    }
    tested = NULL;
}

TEST(the_wrong_element_of_every_array_is_named_with_every_instruction_set) {
    for_each_isa(check_every_array);
}

TEST(parts_are_together_all_results) {
    for (int fusion = 0; fusion < FUSIONS; fusion++) {
        struct ranks ranks;
        open_ranks(&ranks, 1, shape_of(DTYPE_BFLOAT16, (enum fusion)fusion, 5, 64));
        for (int parts = 1; parts <= MAX_NODE_RANKS; parts++) {
            size_t end = 0;
            for (int i = 0; i < parts; i++) {
                struct cell_part part = cell_part_of(&ranks.cells[0], i, parts);
                assert_int_equal(part.first, end);
                if (fusion != FUSION_NONE) assert_int_equal(part.count % 64, 0);
                end += part.count;
            }
            assert_int_equal(end, 5 * 64);
        }
        close_ranks(&ranks);
    }
}

static void check_fill(const struct kernels *kernels) {
    enum { COUNT = 1237 };
    float filled[COUNT + 1], expected[COUNT + 1]; // room for every data type
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        memset(filled, 0x5a, sizeof filled);
        memset(expected, 0x5a, sizeof expected);
        kernels->fill[dtype](filled, COUNT, SEED);
        for (size_t i = 0; i < COUNT; i++) {
            float value = value_at(SEED, i, dtype_significand_bits[dtype]);
            element_store((enum dtype)dtype, expected, i, value);
            assert_true(element_value((enum dtype)dtype, expected, i) == (double)value);
        }
        assert_memory_equal(filled, expected, sizeof filled);
    }
}

TEST(every_instruction_set_fills_the_same_values) {
    for_each_isa(check_fill);
}

TEST(memory_of_the_last_cell_is_used_again) {
    struct cell_memory memory = {.bytes = {0}};
    const size_t rows[] = {4, 9, 2, 9};
    const void *before = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shape shape = shape_of(DTYPE_BFLOAT16, FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4, rows[i], 640);
        struct cell in_memory, alone;
        assert_int_equal(cell_open_in(&memory, &in_memory, &shape, 1, 3, SEED), 0);
        assert_int_equal(cell_open(&alone, &shape, 1, 3, SEED), 0);
        struct call call = cell_call(&in_memory, 1), other = cell_call(&alone, 1);
        assert_memory_equal(call.input, other.input, call_bytes(&call));
        assert_memory_equal(call.residual, other.residual, call_bytes(&call));
        if (i >= 2) assert_ptr_equal(in_memory.input, before);
        before = in_memory.input;
        cell_close(&alone);
        cell_close(&in_memory);
    }
    cell_memory_free(&memory);
}

TEST(what_was_not_written_is_wrong) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            struct ranks ranks;
            open_ranks(&ranks, 2, shape_of((enum dtype)dtype, (enum fusion)fusion, 2, 64));
            cell_poison(&ranks.cells[0]);
            assert_false(right(&ranks, 0, SUM_NATIVE));
            close_ranks(&ranks);
        }
    }
}

TEST(ranks_and_calls_have_different_data) {
    struct ranks ranks;
    open_ranks(&ranks, 4, shape_of(DTYPE_FLOAT32, FUSION_NONE, 4, 128));
    for (int a = 0; a < 4; a++) {
        for (size_t data_set = 0; data_set < ranks.cells[a].data_sets; data_set++) {
            struct call call = cell_call(&ranks.cells[a], data_set);
            for (int b = 0; b < 4; b++) {
                for (size_t other = 0; other < ranks.cells[b].data_sets; other++) {
                    struct call other_call = cell_call(&ranks.cells[b], other);
                    bool same = memcmp(call.input, other_call.input, call_bytes(&call)) == 0;
                    assert_int_equal(same, a == b && data_set == other);
                }
            }
        }
    }
    close_ranks(&ranks);
}

TEST(nvfp4_refuses_odd_hidden_sizes) {
    struct shape shape = shape_of(DTYPE_BFLOAT16, FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4, 1, 24);
    assert_non_null(shape_refusal(&shape));
    shape.hidden_size = 32;
    assert_null(shape_refusal(&shape));
}

// malloc's own size of a block, which it rounds up.
TEST(a_cell_uses_the_memory_that_it_reports) {
    const size_t rows[] = {1, 3, 700};
    for (int op = 0; op < OPS; op++) {
        for (int fusion = 0; fusion < (op == OP_ALLREDUCE ? FUSIONS : 1); fusion++) {
            for (size_t i = 0; i < 3; i++) {
                struct shape shape = shape_of(DTYPE_BFLOAT16, (enum fusion)fusion, rows[i], 1920);
                struct cell cell;
                shape.op = (enum op)op;
                assert_int_equal(cell_open(&cell, &shape, 1, 3, SEED), 0);
                void *const arrays[] = {cell.input,        cell.residual, cell.gamma,
                                        cell.residual_out, cell.out,      cell.block_scales};
                size_t given = 0;
                for (int array = 0; array < 6; array++) given += malloc_usable_size(arrays[array]);
                size_t said = cell_bytes(&shape, 1, 3);
                if (given < said || given > said + 6 * 8192) fail_msg("%zu, not %zu", said, given);
                cell_close(&cell);
            }
        }
    }
}
