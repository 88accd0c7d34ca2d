// A wrong number in any GEMM's or collective's result is found, at any place and of any type; right results
// pass. One rank, by plain loops and MPI's own collectives.
#define HAS_OWN_MAIN
#include "../../unit_test.h"

#include "workload/verify.h"

#include <string.h>

#include "elements/element.h"

static const char *const lines[] = {
    "begin name=x gemms=6 collectives=4 actions=1 seed=7",
    "collective name=sum kind=allreduce elements=42",
    "collective name=gather kind=all_gather elements=13",
    "collective name=there kind=all_to_all dtype=float16 matrix=30",
    "collective name=other kind=allreduce dtype=bfloat16 elements=11",
    "gemm name=forward m=5 n=6 k=7 layout=NT phase=forward sequence=0",
    "gemm name=input m=5 n=7 k=6 layout=NN phase=backward sequence=0",
    "gemm name=own m=3 n=4 k=9 layout=NT phase=forward sequence=1 dtype=float16",
    "gemm name=short m=2 n=5 k=40 layout=TN phase=backward sequence=1 dtype=bfloat16 into=3@1",
    "gemm name=weight m=6 n=7 k=5 layout=TN phase=backward sequence=0 into=0@0",
    "gemm name=weight m=6 n=7 k=3 layout=TN phase=backward sequence=0 into=0@0 accumulate=1",
    "do gemm=0",
    "end",
};

static void multiply(const struct gemm *gemm) {
    for (size_t i = 0; i < gemm->m; i++) {
        for (size_t j = 0; j < gemm->n; j++) {
            double sum = gemm->accumulate ? element_value(gemm->dtype, gemm->c, i * gemm->n + j) : 0;
            for (size_t p = 0; p < gemm->k; p++) {
                size_t a = gemm->trans_a ? p * gemm->m + i : i * gemm->k + p;
                size_t b = gemm->trans_b ? j * gemm->k + p : p * gemm->n + j;
                sum += element_value(gemm->dtype, gemm->a, a) * element_value(gemm->dtype, gemm->b, b);
            }
            element_store(gemm->dtype, gemm->c, i * gemm->n + j, (float)sum);
        }
    }
}

// A step of one rank with right results.
static void do_step(struct program *program) {
    for (size_t i = 0; i < program->gemm_count; i++) multiply(&program->gemms[i]);
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        memcpy(collective->out, collective->in,
               collective->out_elements * dtype_sizes_bytes[collective->dtype]);
    }
}

static int wrong_results(const struct program *program, char first[PROGRAM_REASON]) {
    first[0] = '\0';
    return verify(program, MPI_COMM_SELF, first);
}

// Each of these elements, one more than it should be.
static void finds_each(const struct program *program, enum dtype dtype, void *elements, size_t count,
                       const char *name) {
    char first[PROGRAM_REASON];
    for (size_t i = 0; i < count; i++) {
        float right = (float)element_value(dtype, elements, i);
        element_store(dtype, elements, i, right + 1);
        assert_int_equal(wrong_results(program, first), 1);
        assert_non_null(strstr(first, name));
        element_store(dtype, elements, i, right);
    }
}

TEST(every_wrong_number_is_found) {
    struct program program = {.rank = 0, .ranks = 1};
    char first[PROGRAM_REASON];
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(program_read(&program, lines[i], first), i + 1 < sizeof lines / sizeof lines[0]);
    }
    do_step(&program);
    assert_int_equal(wrong_results(&program, first), 0);
    for (size_t g = 0; g < program.gemm_count; g++) {
        const struct gemm *gemm = &program.gemms[g];
        if (gemm->into < 0) finds_each(&program, gemm->dtype, gemm->c, gemm->m * gemm->n, gemm->name);
    }
    for (size_t c = 0; c < program.collective_count; c++) {
        const struct collective *collective = &program.collectives[c];
        finds_each(&program, collective->dtype, collective->out, collective->out_elements, collective->name);
    }
    program_poison(&program); // a step that did nothing is wrong everywhere, but NaNs add up to NaNs
    assert_int_equal(wrong_results(&program, first), 9);
    program_free(&program);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int failed = run_unit_tests();
    MPI_Finalize();
    return failed;
}
