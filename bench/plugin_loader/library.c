// Libraries of plug-ins; see library.h. Code of a library runs before the library is known by a name, so
// crashes are reported here, with its path.
#include "library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CRASHES = 5 };
static const int crashes[CRASHES] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const char *const descriptions[CRASHES] = {"segmentation fault", "bus error", "arithmetic error",
                                                  "illegal instruction", "abort"};
static char crash_lines[CRASHES][PLUGIN_REASON_SIZE]; // formatted ahead: a signal handler may only write

static void report_crash(int number) {
    for (int i = 0; i < CRASHES; i++) {
        if (crashes[i] != number) continue;
        if (write(STDERR_FILENO, crash_lines[i], strlen(crash_lines[i])) < 0) _exit(2);
    }
    _exit(1);
}

static void begin_watch(const char *path, struct sigaction before[CRASHES]) {
    for (int i = 0; i < CRASHES; i++) {
        snprintf(crash_lines[i], sizeof crash_lines[i],
                 "gentables-bench: %.400s: crashed (%s) in gentables_plugin\n", path, descriptions[i]);
        sigaction(crashes[i], &(struct sigaction){.sa_handler = report_crash}, &before[i]);
    }
}

static void end_watch(const struct sigaction before[CRASHES]) {
    for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &before[i], NULL);
}

static const gt_plugin *load(const char *path, char reason[PLUGIN_REASON_SIZE]) {
    typedef const gt_plugin *entry(uint32_t abi);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason, PLUGIN_REASON_SIZE, "%s: cannot be loaded: %s", path, dlerror());
        return NULL;
    }
    void *symbol = dlsym(library, "gentables_plugin");
    entry *of_library;
    memcpy(&of_library, &symbol, sizeof of_library);
    if (symbol == NULL) {
        snprintf(reason, PLUGIN_REASON_SIZE, "%s: exports no gentables_plugin; see bench/plugins/plugin.h",
                 path);
        return NULL;
    }
    const gt_plugin *declared = of_library(GENTABLES_PLUGIN_ABI);
    if (declared == NULL) {
        snprintf(reason, PLUGIN_REASON_SIZE, "%s: does not support version 1 of the interface", path);
    }
    return declared;
}

const gt_plugin *library_load(const char *path, char reason[PLUGIN_REASON_SIZE]) {
    struct sigaction before[CRASHES];
    begin_watch(path, before);
    const gt_plugin *declared = load(path, reason);
    end_watch(before);
    return declared;
}
