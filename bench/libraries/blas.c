// Loads OpenBLAS; see blas.h.
#include "blas.h"

#include "functions.h"

// As Debian and Fedora call it, best first.
static const char *const names[] = {"libopenblas.so.0", "libopenblasp.so.0", "libopenblaso.so.0",
                                    "libopenblas.so", NULL};

static const char *const function_names[] = {"cblas_sgemm",
                                             "cblas_dgemm",
                                             "openblas_get_corename",
                                             "openblas_get_config",
                                             "openblas_set_num_threads",
                                             "openblas_get_num_threads",
                                             NULL};
struct functions {
    blas_sgemm *sgemm;
    blas_dgemm *dgemm;
    const char *(*corename)(void), *(*config)(void);
    void (*set_threads)(int threads);
    int (*get_threads)(void);
};

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
    void *library = library_open("GENTABLES_OPENBLAS", names, reason, reason_size);
    struct functions found;
    if (library == NULL && *reason == '\0')
        snprintf(reason, reason_size,
                 "no OpenBLAS (Debian: libopenblas0-pthread; or GENTABLES_OPENBLAS=FILE)");
    if (library == NULL) return -1;
    if (functions_look_up(library, function_names, &found) != NULL) {
        snprintf(reason, reason_size, "the library loaded as OpenBLAS lacks some of its functions");
        return -1;
    }
    *blas = (struct blas){.sgemm = found.sgemm, .dgemm = found.dgemm, .set_threads = found.set_threads};
    blas->set_threads(threads);
    blas->threads = found.get_threads();
    snprintf(blas->core, sizeof blas->core, "%s", found.corename());
    take_version(blas, found.config());
    return 0;
}
