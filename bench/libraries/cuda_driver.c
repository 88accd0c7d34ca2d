// Loads the CUDA driver; see cuda_driver.h.
#include "cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

enum { CUDA_MAJOR = CUDA_VERSION / 1000, LEAST_MAJOR = 12 }; // of the toolkit: this build's; any build's

static struct cuda_driver loaded;
static char refusal[192]; // "": the driver is ready
static int gpu_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void refuse(const char *format, int a, int b) {
    snprintf(refusal, sizeof refusal, format, a, b);
}

static void refuse_version(void) {
    int major = loaded.version / 1000;
    char other[80] = "";
    if (major >= LEAST_MAJOR)
        snprintf(other, sizeof other, ", or build with CUDA %d (-DCUDAToolkit_ROOT=FOLDER)", major);
    snprintf(refusal, sizeof refusal,
             "the CUDA driver is for %d.%d, older than this program's CUDA %d; install one for CUDA %d.0 or "
             "later%s",
             major, loaded.version % 1000 / 10, CUDA_MAJOR, CUDA_MAJOR, other);
}

// The first function that the library lacks, or NULL. cuEventElapsedTime has a second version from CUDA 12.8
// on, with the same parameters (cudaTypedefs.h); the first one serves as well.
static const char *look_up_functions(void *library) {
#define FUNCTION(name) *(void **)&loaded.name = dlsym(library, NAME_OF(name));
    CUDA_DRIVER_FUNCTIONS(FUNCTION)
    CUDA_DRIVER_NEWER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (loaded.cuEventElapsedTime == NULL)
        *(void **)&loaded.cuEventElapsedTime = dlsym(library, "cuEventElapsedTime");
#define FUNCTION(name)                                                                                       \
    if (loaded.name == NULL) return NAME_OF(name);
    CUDA_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return NULL;
}

bool driver_has_multicast(const struct cuda_driver *driver) {
#define FUNCTION(name)                                                                                       \
    if (driver->name == NULL) return false;
    CUDA_DRIVER_NEWER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return true;
}

static void start_driver(void) {
    CUresult result = loaded.cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE ||
        (result == CUDA_SUCCESS && loaded.cuDeviceGetCount(&gpu_count) == CUDA_SUCCESS && gpu_count == 0)) {
        refuse("no GPU: the driver sees none; check `nvidia-smi` and CUDA_VISIBLE_DEVICES", 0, 0);
    } else if (result != CUDA_SUCCESS) {
        char error[128];
        driver_ok(&loaded, result, "the CUDA driver does not start", error, sizeof error);
        snprintf(refusal, sizeof refusal, "%s", error);
    }
}

// The driver reads it once. With 32 connections, the streams of ranks that share a GPU do not wait for each
// other.
static void set_environment(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

// Checks the version before it looks up functions that an old driver may not have. Code of a toolkit loads in
// drivers of its major version, also in older ones, and in newer drivers (NVIDIA, "CUDA Compatibility"): of
// CUDA 12 from driver 525 on, of CUDA 13 from 580 on. The ABI version of CUDA 13's code is 8, of CUDA 12's 7.
static void load(void) {
    set_environment();
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        refuse("no CUDA driver (libcuda.so.1); version %d.%d or later is required", CUDA_MAJOR, 0);
        return;
    }
    *(void **)&loaded.cuDriverGetVersion = dlsym(library, "cuDriverGetVersion");
    if (loaded.cuDriverGetVersion != NULL) loaded.cuDriverGetVersion(&loaded.version);
    if (loaded.version == 0) {
        refuse("no CUDA driver: its library reports version 0; version %d.%d or later is required",
               CUDA_MAJOR, 0);
        return;
    }
    if (loaded.version / 1000 < CUDA_MAJOR) {
        refuse_version();
        return;
    }
    const char *missing = look_up_functions(library);
    if (missing != NULL) {
        snprintf(refusal, sizeof refusal, "the CUDA driver has no %s; a newer driver is required", missing);
        return;
    }
    start_driver();
}

const struct cuda_driver *driver_load(char reason[], size_t reason_size) {
    pthread_once(&once, load);
    if (refusal[0] == '\0') return &loaded;
    snprintf(reason, reason_size, "%s", refusal);
    return NULL;
}

int driver_gpus(char reason[], size_t reason_size) {
    return driver_load(reason, reason_size) != NULL ? gpu_count : 0;
}

int driver_version(void) {
    pthread_once(&once, load);
    return loaded.version;
}

bool driver_ok(const struct cuda_driver *driver, CUresult result, const char *what, char reason[],
               size_t reason_size) {
    const char *name = "CUDA error", *text = "unknown error";
    if (result == CUDA_SUCCESS) return true;
    driver->cuGetErrorName(result, &name);
    driver->cuGetErrorString(result, &text);
    snprintf(reason, reason_size, "%s: %s (%s)", what, text, name);
    return false;
}
