// Functions of libraries that are loaded at run time. A macro lists them, LIST(X) with X(name) for each.
//
//   static struct {
//       LIST(FUNCTION_MEMBER)
//   } functions;
//   static const char *const names[] = {"libcudnn.so.9", NULL};
//   void *library = library_open("GENTABLES_CUDNN", names, reason, sizeof reason);
//   const char *missing = functions_look_up(library, FUNCTION_NAMES(LIST), &functions);
#ifndef BENCH_FUNCTIONS_H
#define BENCH_FUNCTIONS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_MEMBER(name) __typeof__(&(name)) name;
#define FUNCTION_NAME(name)   #name,
#define FUNCTION_NAMES(LIST)  ((const char *const[]){LIST(FUNCTION_NAME) NULL})

// The library that an environment variable names, else the first of `names` that is there. NULL: none;
// `reason` is why the variable's cannot be loaded, or "" without the variable.
static inline void *library_open(const char *variable, const char *const names[], char reason[],
                                 size_t reason_size) {
    const char *path = getenv(variable);
    const char *const named[] = {path, NULL};
    bool is_set = path != NULL && *path != '\0';
    void *library = NULL;
    for (const char *const *name = is_set ? named : names; library == NULL && *name != NULL; name++)
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && is_set) snprintf(reason, reason_size, "%s: %s", variable, dlerror());
    if (library == NULL && !is_set) *reason = '\0';
    return library;
}

// Stores the addresses of these functions, of which NULL ends the list, from `to` on. Returns NULL; or the
// first that the library lacks. POSIX guarantees that a function's address fits a void pointer; C does not.
static inline const char *functions_look_up(void *library, const char *const names[], void *to) {
    for (char *at = to; *names != NULL; names++, at += sizeof(void *)) {
        void *address = dlsym(library, *names);
        if (address == NULL) return *names;
        memcpy(at, &address, sizeof address);
    }
    return NULL;
}

#endif
