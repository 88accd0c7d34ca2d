// The first stage: whether the driver, a GPU and the kernels of this program suit each other.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"
#include "stages.h"

enum { LEAST_TP = 2 };

static bool fine(const struct cuda_driver *driver, CUresult result, const char *what,
                 struct findings *findings) {
    return driver_ok(driver, result, what, findings->text, FINDING_SIZE);
}

// Loads the kernels of all TP sizes; false: `text`. Sets the number of ranks: a TP size of the build, the
// largest for which there are GPUs, or else the smallest.
static bool load_all(const struct cuda_driver *driver, CUmodule *helpers, struct findings *findings) {
    for (int tp = LEAST_TP; tp <= MAX_TP; tp++) {
        const void *image = cuda_kernels(tp);
        CUmodule module;
        if (image == NULL) continue;
        snprintf(findings->step, STEP_SIZE, "loading kernels of TP %d", tp);
        if (!fine(driver, driver->cuModuleLoadData(&module, image), findings->step, findings)) return false;
        if (findings->ranks == 0 || tp <= findings->devices) findings->ranks = tp;
    }
    snprintf(findings->step, STEP_SIZE, "loading kernels");
    if (findings->ranks > 0)
        return fine(driver, driver->cuModuleLoadData(helpers, cuda_kernels(0)), findings->step, findings);
    snprintf(findings->text, FINDING_SIZE, "no kernels were built; see GENTABLES_CUDA_TP");
    return false;
}

bool open_first_gpu(const struct cuda_driver *driver, char name[CUDA_NAME_SIZE], int *sm,
                    struct findings *findings) {
    CUdevice id = 0;
    CUcontext context;
    int major = 0, minor = 0;
    snprintf(findings->step, STEP_SIZE, "making a context");
    CUresult result = driver->cuDeviceGet(&id, 0);
    if (result == CUDA_SUCCESS) result = driver->cuDevicePrimaryCtxRetain(&context, id);
    if (result == CUDA_SUCCESS) result = driver->cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) result = driver->cuDeviceGetName(name, CUDA_NAME_SIZE, id);
    driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id);
    driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id);
    *sm = 10 * major + minor;
    return fine(driver, result, findings->step, findings);
}

// Appends to the text.
__attribute__((format(printf, 2, 3))) static void add(struct findings *findings, const char *format, ...) {
    size_t used = strlen(findings->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(findings->text + used, FINDING_SIZE - used, format, arguments);
    va_end(arguments);
}

// Compares the loaded code with the GPU. Code for another GPU of the same major version works. PTX works,
// but loads slowly, and PTX before 9.0 has no programmatic launches and no multicast.
static enum stage_end judge_versions(int sm, struct kernel_versions versions, struct findings *findings) {
    if (versions.binary / 10 != sm / 10 || versions.binary > sm) {
        add(findings, "; they are not for sm_%d", sm);
        return STAGE_FAILED;
    }
    if (kernels_compiled_at_load(versions)) add(findings, "; the driver compiled them");
    if (kernels_lack_features(versions, sm)) {
        add(findings, "; they have no programmatic launches and no multicast: build for sm_%d", sm);
        return STAGE_FAILED;
    }
    if (kernels_compiled_at_load(versions)) add(findings, ": build for sm_%d", sm);
    return STAGE_OK;
}

enum stage_end stage_context(struct findings *findings) {
    const struct cuda_driver *driver = device_driver(findings->text, FINDING_SIZE);
    char name[CUDA_NAME_SIZE] = "";
    CUmodule helpers = NULL;
    struct kernel_versions versions = {0};
    int sm = 0;
    if (driver == NULL) return STAGE_NO_DEVICE;
    findings->devices = driver_gpus(findings->text, FINDING_SIZE);
    if (!open_first_gpu(driver, name, &sm, findings)) return STAGE_FAILED;
    uint64_t since_ns = clock_ns();
    if (!load_all(driver, &helpers, findings)) return STAGE_FAILED;
    double took_s = (double)(clock_ns() - since_ns) * 1e-9;
    if (!kernels_versions(driver, helpers, &versions, findings->text, FINDING_SIZE)) return STAGE_FAILED;
    findings->text[0] = '\0';
    add(findings, "%d x %s, sm_%d, driver for CUDA %d.%d; kernels of sm_%d from PTX %d.%d, loaded in %.1f s",
        findings->devices, name, sm, driver->version / 1000, driver->version % 1000 / 10, versions.binary,
        versions.ptx / 10, versions.ptx % 10, took_s);
    return judge_versions(sm, versions, findings);
}
