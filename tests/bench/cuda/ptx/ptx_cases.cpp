// The cases of kernels.cpp and exchange.cpp, of the TP size CASES_TP, in the PTX that nvcc compiled:
// translated kernels (tests/stand_ins/ptx) run in place of the C++ sources. A launch is the bytes that
// parameters.h describes; the ranks that it does not concern have bytes that are no addresses.
#include "../kernels/kernel_cases.h"
#include "cuda/kernels/exchange.h"
#include "ptx_kernels.h"

extern "C" {
#include "elements/element.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int tp = CASES_TP;
uint32_t *give_up; // of the launch that runs

const PtxKernel *find(const std::string &name) {
    for (const PtxKernel *kernel = ptx_kernels; kernel->name != nullptr; kernel++) {
        if (name == kernel->name) return kernel;
    }
    return nullptr;
}

void run(const PtxKernel &kernel, bool has_codes, const Arguments &a) {
    Launch<tp> launch;
    std::memset(static_cast<void *>(&launch), 0xee, sizeof launch);
    const Call &call = a.call;
    launch.call = {call.num_tokens,
                   call.accesses_per_token,
                   call.accesses_per_block,
                   0,
                   call.gamma,
                   call.epsilon,
                   call.scale,
                   call.linear_scales,
                   a.workspace.max_blocks,
                   a.workspace.capacity,
                   a.workspace.multicast,
                   a.workspace.give_up};
    for (int rank = 0; rank < tp; rank++) {
        launch.slots[rank] = a.workspace.slots[rank];
        launch.flags[rank] = a.workspace.flags[rank];
    }
    void *out = has_codes ? static_cast<void *>(call.codes) : call.out;
    launch.ranks[rank_index()] = {
        a.rank,           call.input, out, call.residual, call.residual_out, call.norm_out, call.block_scales,
        a.workspace.state};
    give_up = const_cast<uint32_t *>(a.workspace.give_up);
    kernel.run(&launch);
}

// Ends the test unless a kernel has so many bytes of parameters.
void check_parameters(const PtxKernel &kernel, size_t bytes) {
    if (kernel.parameter_bytes == bytes) return;
    std::printf("FAILED: %s has parameters of %u bytes instead of %zu\n", kernel.name, kernel.parameter_bytes,
                bytes);
    std::exit(1);
}

bool has(const char *text, const char *part) {
    return std::strstr(text, part) != nullptr;
}

// Whether a kernel, by its name, needs multicast, and so SM90.
bool needs_multicast(const char *kernel_name) {
    for (const struct cuda_kernel_facts &facts : cuda_kernel_facts) {
        if (facts.needs_multicast && has(kernel_name, (std::string("gentables_") + facts.name + "_").c_str()))
            return true;
    }
    return false;
}

// Adds the kernel with these properties, if the translated file has it.
void add_case(std::vector<Case> &cases, const char *function, const char *strategy, int dtype,
              const char *accumulate, int fusion) {
    std::string name = std::string("gentables_") + function + "_" + dtype_short_names[dtype] + "_" +
                       accumulate + "_" + fusion_facts[fusion].short_name + "_tp" + std::to_string(tp);
    const PtxKernel *kernel = find(name);
    if (kernel == nullptr || (!OF_SM90 && needs_multicast(kernel->name))) return;
    check_parameters(*kernel, sizeof(Launch<tp>));
    bool has_codes = fusion_facts[fusion].code_bits > 0;
    cases.push_back(
        {strategy, accumulate, dtype, tp, fusion, [=](const Arguments &a) { run(*kernel, has_codes, a); }});
}

// The kernels that are cases: exchange.h has others.
size_t count_kernels() {
    size_t count = 0;
    for (const PtxKernel *kernel = ptx_kernels; kernel->name != nullptr; kernel++) {
        bool is_case = !has(kernel->name, "_exchange_") && !has(kernel->name, "_reduce_scatter_");
        count += is_case && (OF_SM90 || !needs_multicast(kernel->name));
    }
    return count;
}

} // namespace

void ptx_give_up() {
    __atomic_store_n(give_up, 1u, __ATOMIC_RELAXED);
}

void exchange_in_ptx(const char *kernel_name, const ExchangeLaunch<tp> &launch) {
    static const char *known_name = nullptr; // a test runs one kernel after the other
    static const PtxKernel *kernel = nullptr;
    if (kernel_name != known_name) {
        kernel = find(std::string("gentables_") + kernel_name + "_tp" + std::to_string(tp));
        if (kernel == nullptr) {
            std::printf("FAILED: no kernel %s\n", kernel_name);
            std::exit(1);
        }
        check_parameters(*kernel, sizeof launch);
        known_name = kernel_name;
    }
    give_up = const_cast<uint32_t *>(launch.call.give_up);
    kernel->run(&launch);
}

void add_cases(std::vector<Case> &cases) {
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        for (int fusion = 0; fusion < FUSIONS; fusion++) {
            for (const char *accumulate : {"native", "fp32"}) {
#define ADD_CASE(kernel, function, strategy, messages, fp32_alone)                                           \
    add_case(cases, #function, strategy, dtype, accumulate, fusion);
                CUDA_KERNEL_LIST(ADD_CASE)
            }
        }
    }
    if (cases.size() == count_kernels()) return;
    std::printf("FAILED: %zu of %zu kernels are cases\n", cases.size(), count_kernels());
    std::exit(1);
}
