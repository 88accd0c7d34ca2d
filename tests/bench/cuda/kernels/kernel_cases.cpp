// The kernels that kernels.cpp runs, of one TP size, CASES_TP. Planted faults of kernels are compiled in this
// file only. FEW_CASES: two types, fp32 sums; ONE_TYPE: one of these types.
#include "kernel_cases.h"

#include "kernel_files.h"
#define FUSION_ON_GPU
#include "fusion_files.h"

extern "C" {
#include "elements/element.h"
}

namespace {

template <class Type, Accumulate accumulate, int tp, class Fusion>
void add_fusion(std::vector<Case> &cases, int dtype, int fusion) {
    const char *word = accumulate == Accumulate::native ? "native" : "fp32";
#define ADD_CASE(kernel, function, strategy, messages, fp32_alone)                                           \
    if constexpr (!(fp32_alone) || accumulate == Accumulate::fp32)                                           \
        cases.push_back({strategy, word, dtype, tp, fusion,                                                  \
                         [](const Arguments &a) { function<Type, accumulate, tp, Fusion>(a); }});
    CUDA_KERNEL_LIST(ADD_CASE)
}

template <class Type, Accumulate accumulate, int tp> void add_fusions(std::vector<Case> &cases, int dtype) {
    add_fusion<Type, accumulate, tp, None>(cases, dtype, FUSION_NONE);
#define ADD_FUSION(fusion, short_name, class_name)                                                           \
    add_fusion<Type, accumulate, tp, class_name>(cases, dtype, fusion);
    EPILOGUES(ADD_FUSION)
}

} // namespace

void add_cases(std::vector<Case> &cases) {
    constexpr int tp = CASES_TP;
#ifndef FEW_CASES
    add_fusions<Bfloat16, Accumulate::native, tp>(cases, DTYPE_BFLOAT16);
    add_fusions<Float16, Accumulate::native, tp>(cases, DTYPE_FLOAT16);
    add_fusions<Float32, Accumulate::fp32, tp>(cases, DTYPE_FLOAT32);
#endif
    add_fusions<Bfloat16, Accumulate::fp32, tp>(cases, DTYPE_BFLOAT16);
#ifndef ONE_TYPE
    add_fusions<Float16, Accumulate::fp32, tp>(cases, DTYPE_FLOAT16);
#endif
}
