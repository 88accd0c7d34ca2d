// The compiled kernels in the driver: loads them, and determines what the driver loaded: code for the GPU, or
// PTX, which it compiles at load. See device.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { PTX_OF_CLUSTERS = 90 }; // the first that has clusters, programmatic launches and multicast

// Whether the driver uses only PTX, also where there is code for its GPU.
static bool only_ptx_counts(void) {
    const char *value = getenv("CUDA_FORCE_PTX_JIT");
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

// The reason why the driver loads no kernels, and the way out.
static void refuse(const struct device *device, CUresult result, char reason[REASON_SIZE]) {
    const char *name = "CUDA error";
    if (cuda_is_compiled && only_ptx_counts()) {
        snprintf(
            reason, REASON_SIZE,
            "CUDA_FORCE_PTX_JIT is set, and the driver cannot compile this program's PTX for sm_%d; unset "
            "it",
            device->sm);
        return;
    }
    if (!cuda_is_compiled || result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        snprintf(reason, REASON_SIZE,
                 "kernels were built for %s, and this GPU is sm_%d; -DGENTABLES_CUDA_ARCHITECTURES=%d builds "
                 "others",
                 cuda_architectures, device->sm, device->sm);
        return;
    }
    device->driver->cuGetErrorName(result, &name);
    snprintf(reason, REASON_SIZE,
             "kernels were built by CUDA %d.%d; this driver, for %d.%d, cannot load them (%s); "
             "-DGENTABLES_CUDA_ARCHITECTURES=%d builds code",
             CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, device->driver->version / 1000,
             device->driver->version % 1000 / 10, name, device->sm);
}

bool kernels_versions(const struct cuda_driver *driver, CUmodule helpers, struct kernel_versions *versions,
                      char reason[], size_t reason_size) {
    CUfunction kernel = NULL;
    CUresult result = driver->cuModuleGetFunction(&kernel, helpers, "gentables_empty");
    if (result == CUDA_SUCCESS)
        result = driver->cuFuncGetAttribute(&versions->binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel);
    if (result == CUDA_SUCCESS)
        result = driver->cuFuncGetAttribute(&versions->ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel);
    return driver_ok(driver, result, "querying a kernel", reason, reason_size);
}

bool kernels_compiled_at_load(struct kernel_versions versions) {
    return versions.binary != versions.ptx;
}

bool kernels_lack_features(struct kernel_versions versions, int sm) {
    return sm >= PTX_OF_CLUSTERS && versions.ptx < PTX_OF_CLUSTERS;
}

// The PTX decides: the driver accepts launches with attributes that kernels of older PTX have no instructions
// for, and such kernels would not wait for the launch ahead.
static void note_features(struct device *device) {
    int can_launch_clusters = 0;
    bool has_instructions = device->sm >= PTX_OF_CLUSTERS && device->versions.ptx >= PTX_OF_CLUSTERS;
    device->driver->cuDeviceGetAttribute(&can_launch_clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
                                         device->id);
    device->has_clusters = has_instructions && can_launch_clusters != 0;
    device->can_wait_for_launches = has_instructions && !device->options.no_programmatic;
    device->can_multicast = device->can_multicast && has_instructions;
}

// On one rank, so that there is one line.
static void warn(const struct device *device) {
    if (device->group->rank != 0 || !kernels_compiled_at_load(device->versions)) return;
    bool lacks = kernels_lack_features(device->versions, device->sm);
    fprintf(stderr,
            "gentables-bench: warning: the driver compiled the kernels at load, from PTX %d.%d%s; "
            "-DGENTABLES_CUDA_ARCHITECTURES=%d builds code for this GPU\n",
            device->versions.ptx / 10, device->versions.ptx % 10,
            lacks ? ", which has no clusters, programmatic launches and multicast" : "", device->sm);
}

bool kernels_load(struct device *device, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    CUresult result = driver->cuModuleLoadData(&device->modules[0], cuda_kernels(0));
    if (cuda_images_lack(result)) {
        refuse(device, result, reason);
        return false;
    }
    const void *image = cuda_kernels(device->group->size);
    if (result == CUDA_SUCCESS && image != NULL)
        result = driver->cuModuleLoadData(&device->modules[1], image);
    if (!driver_ok(driver, result, "loading kernels", reason, REASON_SIZE) ||
        !kernels_versions(driver, device->modules[0], &device->versions, reason, REASON_SIZE))
        return false;
    note_features(device);
    warn(device);
    return true;
}

// Kernels of a TP size have it in their names. Only the right module is searched: a failed lookup would count
// as an error in tools that watch the driver.
CUfunction device_kernel(struct device *device, const char *name) {
    CUfunction kernel = NULL;
    CUmodule module = device->modules[strstr(name, "_tp") != NULL];
    if (module == NULL || device->driver->cuModuleGetFunction(&kernel, module, name) != CUDA_SUCCESS)
        return NULL;
    return kernel;
}

const char *device_no_multicast(const struct device *device) {
    if (device->can_multicast) return NULL;
    if (device->options.no_multicast) return "not used with --no-multicast";
    if (!driver_has_multicast(device->driver)) return "the driver has no multicast; 12.1 or later has it";
    if (kernels_lack_features(device->versions, device->sm)) return "PTX before 9.0 has no multicast";
    return "the hardware has no multicast";
}
