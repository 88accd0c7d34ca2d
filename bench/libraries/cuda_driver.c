// Loads the CUDA driver; see cuda_driver.h.
#include "cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

static struct cuda_driver loaded;
static char refusal[160]; // "": the driver is ready
static int gpu_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void refuse(const char *format, int a, int b) {
    snprintf(refusal, sizeof refusal, format, a, b);
}

// The first function that the library lacks, or NULL.
static const char *look_up_functions(void *library) {
#define FUNCTION(name)                                                                                       \
    *(void **)&loaded.name = dlsym(library, NAME_OF(name));                                                  \
    if (loaded.name == NULL) return NAME_OF(name);
    CUDA_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return NULL;
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

// The driver reads these once. EAGER loads all kernels of a module at once: loading one later could wait for
// a running kernel, which waits for the kernel that is being loaded. With 32 connections, the streams of
// ranks that share a GPU do not wait for each other.
static void set_environment(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

// Checks the version before it looks up functions that an old driver may not have.
static void load(void) {
    set_environment();
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        refuse("no CUDA driver (libcuda.so.1); version %d.%d or later is required", CUDA_VERSION / 1000,
               CUDA_VERSION % 1000 / 10);
        return;
    }
    *(void **)&loaded.cuDriverGetVersion = dlsym(library, "cuDriverGetVersion");
    if (loaded.cuDriverGetVersion != NULL) loaded.cuDriverGetVersion(&loaded.version);
    if (loaded.version == 0) {
        refuse("no CUDA driver: its library reports version 0; version %d.%d or later is required",
               CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
        return;
    }
    if (loaded.version / 1000 < CUDA_VERSION / 1000) {
        snprintf(refusal, sizeof refusal,
                 "the CUDA driver is for %d.%d, older than this program's CUDA %d.%d; install a "
                 "newer driver, or build with an older CUDA",
                 loaded.version / 1000, loaded.version % 1000 / 10, CUDA_VERSION / 1000,
                 CUDA_VERSION % 1000 / 10);
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
