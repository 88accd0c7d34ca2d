// Libraries of plug-ins; see library.h. Nothing of a library has been checked yet when its first code runs.
#include "library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CRASHES = 5 };
static const int crashes[CRASHES] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const char *const words[CRASHES] = {"segmentation fault", "bus error", "arithmetic error",
                                           "illegal instruction", "abort"};
static char crash_lines[CRASHES][PLUGIN_REASON_SIZE]; // written before: a handler may write and no more

static void tell_crash(int number) {
    for (int i = 0; i < CRASHES; i++) {
        if (crashes[i] != number) continue;
        if (write(STDERR_FILENO, crash_lines[i], strlen(crash_lines[i])) < 0) _exit(2);
    }
    _exit(1);
}

static void begin_watch(const char *path, struct sigaction before[CRASHES]) {
    for (int i = 0; i < CRASHES; i++) {
        snprintf(crash_lines[i], sizeof crash_lines[i],
                 "gentables-bench: %.400s: crashed (%s) when it was asked what it has\n", path, words[i]);
        sigaction(crashes[i], &(struct sigaction){.sa_handler = tell_crash}, &before[i]);
    }
}

static void end_watch(const struct sigaction before[CRASHES]) {
    for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &before[i], NULL);
}

static const gt_plugin *ask(const char *path, char reason[PLUGIN_REASON_SIZE]) {
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
    const gt_plugin *says = of_library(GENTABLES_PLUGIN_ABI);
    if (says == NULL) {
        snprintf(reason, PLUGIN_REASON_SIZE, "%s: knows another version of the interface; this is version 1",
                 path);
    }
    return says;
}

const gt_plugin *library_load(const char *path, char reason[PLUGIN_REASON_SIZE]) {
    struct sigaction before[CRASHES];
    begin_watch(path, before);
    const gt_plugin *says = ask(path, reason);
    end_watch(before);
    return says;
}
