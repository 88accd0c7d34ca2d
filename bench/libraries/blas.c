// Loads OpenBLAS; see blas.h.
#include "blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As Debian and Fedora call it, best first.
static const char *const names[] = {"libopenblas.so.0", "libopenblasp.so.0", "libopenblaso.so.0",
                                    "libopenblas.so"};

// A function of the library. POSIX guarantees that a function's address fits a void pointer; C does not.
static void find(void *library, const char *name, void *function, size_t size) {
    void *address = dlsym(library, name);
    memcpy(function, &address, size);
}

#define FIND(library, name, function) find(library, name, &(function), sizeof(function))

static void *load(char reason[], size_t reason_size) {
    const char *path = getenv("GENTABLES_OPENBLAS");
    if (path != NULL && *path != '\0') {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) snprintf(reason, reason_size, "GENTABLES_OPENBLAS: %s", dlerror());
        return library;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) return library;
    }
    snprintf(reason, reason_size, "no OpenBLAS (Debian: libopenblas0-pthread; or GENTABLES_OPENBLAS=FILE)");
    return NULL;
}

// The first two words of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
static void take_version(struct blas *blas, const char *config) {
    const char *end = strchr(config, ' ');
    if (end != NULL) end = strchr(end + 1, ' ');
    size_t length = end != NULL ? (size_t)(end - config) : strlen(config);
    snprintf(blas->version, sizeof blas->version, "%.*s", (int)length, config);
}

int blas_open(struct blas *blas, int threads, char reason[], size_t reason_size) {
    char text[16];
    *blas = (struct blas){.threads = 1};
    snprintf(text, sizeof text, "%d", threads);
    setenv("OPENBLAS_NUM_THREADS", text, 1); // it starts its threads as it is loaded
    void *library = load(reason, reason_size);
    if (library == NULL) return -1;
    const char *(*corename)(void), *(*config)(void);
    int (*get_threads)(void);
    FIND(library, "cblas_sgemm", blas->sgemm);
    FIND(library, "cblas_dgemm", blas->dgemm);
    FIND(library, "cblas_sbgemm", blas->sbgemm);
    FIND(library, "openblas_get_corename", corename);
    FIND(library, "openblas_get_config", config);
    FIND(library, "openblas_set_num_threads", blas->set_threads);
    FIND(library, "openblas_get_num_threads", get_threads);
    if (blas->sgemm == NULL || blas->dgemm == NULL || corename == NULL || config == NULL ||
        blas->set_threads == NULL || get_threads == NULL) {
        snprintf(reason, reason_size, "the library loaded as OpenBLAS lacks some of its functions");
        return -1;
    }
    blas->set_threads(threads);
    blas->threads = get_threads();
    snprintf(blas->core, sizeof blas->core, "%s", corename());
    take_version(blas, config());
    return 0;
}
