// The stage of the kernels' code: what the driver says of each loaded kernel, and, with a CUDA toolkit, which
// instructions its machine code has.
#include <stdio.h>

#include "cuda/candidate.h"
#include "cuda/device/device.h"
#include "sass.h"
#include "stages.h"

// What the kernels of a TP size have.
struct code {
    CUmodule module;
    int tp, kernels, registers; // the most registers of a thread
    int in_local;               // kernels with local memory, for registers that do not fit
};

static bool fine(const struct cuda_driver *driver, CUresult result, const char *what,
                 struct findings *findings) {
    return driver_ok(driver, result, what, findings->text, FINDING_SIZE);
}

// Adds a kernel. False: `text`.
static bool add_kernel(const struct cuda_driver *driver, struct code *code, const char *name,
                       CUfunction kernel, struct findings *findings) {
    int registers = 0, local_bytes = 0, threads = 0, needed = (int)kernel_threads(code->tp);
    CUresult result = driver->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel);
    if (result == CUDA_SUCCESS)
        result = driver->cuFuncGetAttribute(&local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel);
    if (result == CUDA_SUCCESS)
        result = driver->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
    if (!fine(driver, result, "querying a kernel", findings)) return false;
    code->kernels++;
    code->in_local += local_bytes > 0;
    if (registers > code->registers) code->registers = registers;
    if (threads >= needed) return true;
    snprintf(findings->text, FINDING_SIZE, "%s: a block has at most %d threads, and needs %d", name, threads,
             needed);
    return false;
}

// Adds the kernels of all strategies with an epilogue; not each strategy has both ways to accumulate.
static bool add_kernels(const struct cuda_driver *driver, struct code *code, struct findings *findings) {
    for (int i = 0; i < CUDA_KERNELS * DTYPES * FUSIONS * 2; i++) {
        char name[KERNEL_NAME_SIZE];
        CUfunction kernel = NULL;
        kernel_name(name, (enum cuda_kernel)(i / 2 / FUSIONS / DTYPES),
                    (enum dtype)(i / 2 / FUSIONS % DTYPES), i % 2 != 0, (enum fusion)(i / 2 % FUSIONS),
                    code->tp);
        if (driver->cuModuleGetFunction(&kernel, code->module, name) != CUDA_SUCCESS) continue;
        snprintf(findings->step, STEP_SIZE, "%s", name);
        if (!add_kernel(driver, code, name, kernel, findings)) return false;
    }
    return true;
}

// Describes the kernels, and checks their instructions, unless the driver has compiled others at load.
static enum stage_end describe(const struct code *code, struct kernel_versions versions,
                               struct findings *findings) {
    char local[64] = "none with local memory", reason[FINDING_SIZE / 2] = "the driver compiled them at load";
    int listed = 0;
    enum sass_end end = SASS_NOT_CHECKED;
    snprintf(findings->step, STEP_SIZE, "reading instructions by cuobjdump");
    if (!kernels_compiled_at_load(versions))
        end = sass_check(cuda_kernels(code->tp), versions.binary, &listed, reason, sizeof reason);
    if (end == SASS_WRONG) {
        snprintf(findings->text, FINDING_SIZE, "%s", reason);
        return STAGE_FAILED;
    }
    if (code->in_local > 0)
        snprintf(local, sizeof local, "%d with local memory, which is slow", code->in_local);
    int used = snprintf(findings->text, FINDING_SIZE, "%d kernels of TP %d, at most %d registers, %s; ",
                        code->kernels, code->tp, code->registers, local);
    if (end == SASS_RIGHT)
        snprintf(findings->text + used, FINDING_SIZE - (size_t)used,
                 "%d have the instructions that they need", listed);
    else
        snprintf(findings->text + used, FINDING_SIZE - (size_t)used, "instructions are not checked: %s",
                 reason);
    return STAGE_OK;
}

enum stage_end stage_code(struct findings *findings) {
    const struct cuda_driver *driver = device_driver(findings->text, FINDING_SIZE);
    struct code code = {.tp = findings->ranks};
    struct kernel_versions versions = {0};
    char name[CUDA_NAME_SIZE];
    CUmodule helpers = NULL;
    int sm = 0;
    if (driver == NULL || !open_first_gpu(driver, name, &sm, findings)) return STAGE_FAILED;
    snprintf(findings->step, STEP_SIZE, "loading kernels");
    CUresult result = driver->cuModuleLoadData(&helpers, cuda_kernels(0));
    if (result == CUDA_SUCCESS) result = driver->cuModuleLoadData(&code.module, cuda_kernels(code.tp));
    if (!fine(driver, result, findings->step, findings) ||
        !kernels_versions(driver, helpers, &versions, findings->text, FINDING_SIZE) ||
        !add_kernels(driver, &code, findings))
        return STAGE_FAILED;
    return describe(&code, versions, findings);
}
