// The check of results: right results pass for every data type, fusion and number of ranks; each planted
// fault is found.
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "calls/cell.h"
#include "calls/cell_check.h"
#include "elements/element.h"
#include "host/epilogue.h"
#include "isas.h"

enum { SEED = 11 };

// Does the work of all ranks of one call, in one process; rank 0's cell gets the results.
struct ranks {
    struct cell cells[MAX_RANKS];
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
    const void *sources[MAX_RANKS];
    struct call call = cell_call(&ranks->cells[0], data_set);
    struct epilogue epilogue;
    for (int rank = 0; rank < ranks->count; rank++)
        sources[rank] = cell_call(&ranks->cells[rank], data_set).input;
    cell_poison(&ranks->cells[0]);
    epilogue_begin(&epilogue, tested ? tested : kernels_best(), &call, 0);
    epilogue_consume(&epilogue, sources, sources_used, call_elements(&call));
}

static bool right(struct ranks *ranks, size_t data_set, bool fp32) {
    char what[160];
    return cell_check(&ranks->cells[0], data_set, fp32, what, sizeof what);
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
                    run_with(&ranks, data_set, counts[i]);
                    if (!cell_check(&ranks.cells[0], data_set, true, what, sizeof what)) {
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
        assert_true(right(&ranks, 0, true));
        assert_false(right(&ranks, 1, true));
        close_ranks(&ranks);
    }
}

TEST(a_rank_left_out_is_found) {
    for (int fusion = 0; fusion < FUSIONS; fusion++) {
        struct ranks ranks;
        open_ranks(&ranks, 16, shape_of(DTYPE_FLOAT16, (enum fusion)fusion, 3, 64));
        run_with(&ranks, 0, 15);
        assert_false(right(&ranks, 0, true));
        assert_false(right(&ranks, 0, false));
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
    assert_false(right(&ranks, 0, true));
    assert_true(right(&ranks, 0, false));
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
                assert_false(right(&ranks, 0, true));
            }
            if (fusion != FUSION_NONE) {
                run_with(&ranks, 0, 3);
                cell->residual_out[cell->residual_out_bytes - 1] ^= 0x40;
                assert_false(right(&ranks, 0, true));
            }
            if (fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4) {
                run_with(&ranks, 0, 3);
                cell->block_scales[block_scale_offset(2, 4, 80)] += 1;
                assert_false(right(&ranks, 0, true));
            }
            close_ranks(&ranks);
        }
    }
}

TEST(what_was_not_written_is_wrong) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            struct ranks ranks;
            open_ranks(&ranks, 2, shape_of((enum dtype)dtype, (enum fusion)fusion, 2, 64));
            cell_poison(&ranks.cells[0]);
            assert_false(right(&ranks, 0, false));
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
                void *const arrays[] = {cell.input,        cell.residual, cell.gamma,       cell.sum,
                                        cell.residual_out, cell.out,      cell.block_scales};
                size_t given = 0;
                for (int array = 0; array < 7; array++) given += malloc_usable_size(arrays[array]);
                size_t said = cell_bytes(&shape, 1, 3);
                if (given < said || given > said + 7 * 8192) fail_msg("%zu, not %zu", said, given);
                cell_close(&cell);
            }
        }
    }
}
