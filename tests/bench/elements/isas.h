// Shared by tests of kernels: each kernel runs with every instruction set of this processor. Instruction sets
// that this processor lacks are printed, and the program then ends with 77, which CTest reports as skipped.
#ifndef TESTS_BENCH_ISAS_H
#define TESTS_BENCH_ISAS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HAS_OWN_MAIN
#include "../../unit_test.h"
#include "elements/kernels.h"

enum { SKIPPED = 77 };

// The instruction sets that kernels are built for, best first, and the words of /proc/cpuinfo that they need.
struct isa {
    const char *name, *flags[7];
};
static const struct isa isas[] = {
#if defined(__x86_64__)
    {"avx512", {"avx512f", "avx512bw", "avx512vl", "avx512dq", "fma", "f16c"}},
    {"avx2", {"avx2", "fma", "f16c"}},
#endif
    {"portable", {NULL}},
};
enum { ISAS = sizeof isas / sizeof *isas };

// Whether the operating system lists a flag of the processor; independent of the tested code.
static inline bool processor_has(const char *flag) {
    char *line = NULL;
    size_t size = 0, length = strlen(flag);
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && !found && getline(&line, &size, file) > 0) {
        if (strncmp(line, "flags", 5) != 0) continue;
        for (char *at = strstr(line, flag); at != NULL && !found; at = strstr(at + 1, flag)) {
            found = at[-1] == ' ' && strchr(" \n", at[length]) != NULL;
        }
        break;
    }
    if (file != NULL) fclose(file);
    free(line);
    return found;
}

static inline bool processor_runs(const struct isa *isa) {
    for (int i = 0; isa->flags[i] != NULL; i++) {
        if (!processor_has(isa->flags[i])) return false;
    }
    return true;
}

// The test of this header: every instruction set is built, and runs where the processor has it.
TEST(every_instruction_set_is_built_and_found) {
    for (int i = 0; i < ISAS; i++) {
        assert_non_null(kernels_all[i]);
        assert_string_equal(kernels_all[i]->isa, isas[i].name);
        if (processor_runs(&isas[i])) assert_ptr_equal(kernels_find(isas[i].name), kernels_all[i]);
    }
    assert_null(kernels_all[ISAS]);
}

// Runs `check` with the kernels of each instruction set that this processor has.
static inline void for_each_isa(void (*check)(const struct kernels *)) {
    for (int i = 0; kernels_all[i] != NULL; i++) {
        const struct kernels *kernels = kernels_find(kernels_all[i]->isa);
        if (kernels != NULL) check(kernels);
    }
}

int main(void) {
    int failed = run_unit_tests(), code = failed == 0 ? 0 : 1;
    for (int i = 0; i < ISAS; i++) {
        if (kernels_find(isas[i].name) != NULL) continue;
        printf("skipped: this processor has no %s\n", isas[i].name);
        if (failed == 0) code = SKIPPED;
    }
    return code;
}

#endif
