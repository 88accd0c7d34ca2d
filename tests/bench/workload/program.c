// Programs of a step: a complete one has its arrays where its GEMMs expect them; invalid ones are rejected.
#include "../../unit_test.h"

#include "workload/program.h"

#include <math.h>
#include <string.h>

#include "elements/element.h"

// Reads lines until one is not part of a program; returns its status.
static int read_all(struct program *program, const char *const lines[], char reason[PROGRAM_REASON]) {
    int status = 1;
    for (size_t i = 0; lines[i] != NULL && status == 1; i++) {
        status = program_read(program, lines[i], reason);
    }
    return status;
}

static bool is_nan(enum dtype dtype, const void *elements) {
    return isnan(element_value(dtype, elements, 0)) != 0;
}

TEST(gemms_find_the_arrays_of_collectives) {
    static const char *const lines[] = {
        "begin name=x gemms=2 collectives=2 actions=4 seed=1",
        "collective name=there kind=all_to_all matrix=6,12,6,12",
        "collective name=sum kind=allreduce elements=40",
        "gemm name=a m=2,4 n=5 k=6 layout=NT phase=forward sequence=0 a=0@0",
        "gemm name=a m=5 n=6 k=2,4 layout=TN phase=backward sequence=0 into=1@10",
        "do post=0",
        "do await=0",
        "do gemm=0",
        "do gemm=1",
        "end",
        NULL,
    };
    char reason[PROGRAM_REASON] = "";
    struct program program = {.rank = 1, .ranks = 2};
    assert_int_equal(read_all(&program, lines, reason), 0);
    assert_int_equal(program.collectives[0].in_elements, 18);
    assert_int_equal(program.collectives[0].out_elements, 24);
    assert_false(program.collectives[0].even);
    assert_int_equal(program.gemms[0].m, 4);
    assert_int_equal(program.gemms[1].k, 4);
    assert_ptr_equal(program.gemms[0].a, program.collectives[0].out);
    assert_ptr_equal(program.gemms[1].c, (float *)program.collectives[1].in + 10);
    program_poison(&program);
    assert_true(is_nan(DTYPE_FLOAT32, program.gemms[1].c));
    assert_false(is_nan(DTYPE_FLOAT32, program.gemms[0].b));
    program_free(&program);
}

// Each array has the type of its GEMM or collective, and no more elements than that needs.
TEST(types_may_differ) {
    static const char *const lines[] = {
        "begin name=x gemms=3 collectives=1 actions=1 seed=1",
        "collective name=sum kind=allreduce dtype=bfloat16 elements=40",
        "gemm name=a m=2 n=3 k=5 layout=NT phase=forward sequence=0",
        "gemm name=b m=2 n=3 k=2000 layout=NT phase=forward sequence=1 dtype=float16",
        "gemm name=c m=5 n=6 k=5 layout=TN phase=backward sequence=2 dtype=bfloat16 into=0@10",
        "do gemm=0",
        "end",
        NULL,
    };
    char reason[PROGRAM_REASON] = "";
    struct program program = {.rank = 0, .ranks = 2};
    size_t bytes = 0;
    assert_int_equal(read_all(&program, lines, reason), 0);
    assert_int_equal(program.collectives[0].dtype, DTYPE_BFLOAT16);
    assert_int_equal(program.gemms[0].dtype, DTYPE_FLOAT32);
    assert_int_equal(program.gemms[1].dtype, DTYPE_FLOAT16);
    assert_ptr_equal(program.gemms[2].c, (uint16_t *)program.collectives[0].in + 10);
    for (size_t i = 0; i < program.array_count; i++) bytes += array_bytes(&program.arrays[i]);
    assert_int_equal(program.bytes, bytes);
    assert_int_equal(bytes, (10 + 15 + 6) * 4 + (4000 + 6000 + 6) * 2 + (40 + 40 + 25 + 30) * 2);
    // The few numbers of bfloat16 need not be sparse because another type's sums have many.
    assert_true(program.densities[DTYPE_BFLOAT16] >= 1);
    program_poison(&program);
    for (size_t i = 0; i < program.gemm_count; i++)
        assert_true(is_nan(program.gemms[i].dtype, program.gemms[i].c));
    assert_false(is_nan(DTYPE_FLOAT16, program.gemms[1].b));
    program_free(&program);
}

static void refuses(const char *line, const char *why) {
    char reason[PROGRAM_REASON] = "";
    struct program program = {.rank = 0, .ranks = 4};
    assert_int_equal(program_read(&program, "begin name=x gemms=2 collectives=2 actions=1 seed=1", reason),
                     1);
    assert_int_equal(program_read(&program, "collective name=c kind=allreduce elements=10", reason), 1);
    assert_int_equal(program_read(&program, line, reason), -1);
    assert_non_null(strstr(reason, why));
    program_free(&program);
}

TEST(what_does_not_fit_is_refused) {
    refuses("gemm name=g m=0 n=1 k=1 layout=NT phase=forward sequence=0", "impossible GEMM");
    refuses("gemm name=g m=1 n=1 k=1 layout=NX phase=forward sequence=0", "impossible GEMM");
    refuses("gemm name=g m=1,2,3 n=1 k=1 layout=NT phase=forward sequence=0", "impossible GEMM");
    refuses("gemm name=g m=4 n=4 k=4 layout=NT phase=forward sequence=0 into=0@0", "does not fit");
    refuses("gemm name=g m=1 n=1 k=1 layout=NT phase=forward sequence=0 into=0@10", "does not fit");
    refuses("gemm name=g m=1 n=1 k=1 layout=NT phase=forward sequence=0 a=1@0", "does not fit");
    refuses("gemm name=g m=1 n=1 k=1 layout=NT phase=forward sequence=0 dtype=float16 into=0@0",
            "does not fit");
    refuses("gemm name=g m=1 n=1 k=1 layout=NT phase=forward sequence=0 dtype=int7", "impossible GEMM");
    refuses("collective name=c kind=allreduce dtype=int7 elements=1", "no such dtype");
    refuses("gemm name=g m=1 n=1 k=1048576 layout=NT phase=forward sequence=0", "exactly");
    refuses("collective name=c kind=gossip elements=1", "no such collective");
    refuses("collective name=c kind=allreduce elements=0", "without a valid size");
    refuses("collective name=c kind=all_to_all matrix=1,2,3", "without a valid size");
    refuses("collective name=c kind=allreduce elements=2147483648", "more elements than MPI counts");
    refuses("collective name=c kind=all_gather elements=536870912", "more elements than MPI counts");
    refuses("collective name=c kind=all_to_all matrix="
            "2147483647,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
            "more elements than MPI counts");
    refuses("do gemm=0", "no such action");
    refuses("do post=1", "no such action");
    refuses("dance", "unknown");
    refuses("end", "less than was announced");
    refuses("begin name=y gemms=1 collectives=0 actions=1 seed=1", "begin: repeated");
}
