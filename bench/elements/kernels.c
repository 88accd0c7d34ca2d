// Chooses the kernels of the best instruction set of this processor; see kernels.h. The build defines
// BUILT_KERNELS as KERNELS(isa) for each compiled instruction set, best first.
#include "kernels.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

// CPUID leaf 1; clang 14 has no name for it.
static int has_f16c(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static int runs_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
static int runs_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
#endif
static int runs_portable(void) {
    return 1;
}

#define KERNELS(isa) extern const struct kernels kernels_##isa;
BUILT_KERNELS
#undef KERNELS

#define KERNELS(isa) &kernels_##isa,
const struct kernels *const kernels_all[] = {BUILT_KERNELS NULL};
#undef KERNELS

#define KERNELS(isa) runs_##isa,
static int (*const runs[])(void) = {BUILT_KERNELS};
#undef KERNELS

const struct kernels *kernels_best(void) {
    for (int i = 0; kernels_all[i] != NULL; i++) {
        if (runs[i]()) return kernels_all[i];
    }
    return NULL; // not reached: the portable kernels run everywhere
}

const struct kernels *kernels_find(const char *isa) {
    for (int i = 0; kernels_all[i] != NULL; i++) {
        if (strcmp(kernels_all[i]->isa, isa) == 0) return runs[i]() ? kernels_all[i] : NULL;
    }
    return NULL;
}
