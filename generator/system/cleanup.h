// Temporary files and folders: none outlives this process. Each is in one list until it is removed or
// renamed; if SIGINT, SIGTERM or SIGHUP ends the process, a handler removes them, as it does if memory is
// short in a library that does not report it. SIGKILL leaves them; see temporary_folder_make.
#ifndef GENTABLES_CLEANUP_H
#define GENTABLES_CLEANUP_H

#include <limits.h>
#include <stdbool.h>

#ifdef __cplusplus
#include <cstdlib>
#include <exception>
#include <new>

extern "C" {
#endif

// Adds a path to the list. A signal between the making of a file and this call leaves the file: block signals
// (signals_block of child.h) around both.
void cleanup_add(const char *path);
// The same for a path that the open file `lock` locks; cleanup_forget closes that.
void cleanup_add_locked(const char *path, int lock);
// The path is removed or renamed. Nothing happens to a path that is not in the list.
void cleanup_forget(const char *path);

// Removes a file, or a folder with everything in it, as far as that is possible. Links are removed, not
// followed. Async-signal-safe.
void cleanup_remove(const char *path);
// Removes everything that this process has added; a forked process removes nothing of its parent.
// Async-signal-safe.
void cleanup_run(void);
// Installs the handler for signals that are not ignored. Afterwards it ends the process by the same signal.
void cleanup_on_signals(void);

struct problem;

// Makes the folder NAME.locked.XXXXXX in TMPDIR (default: /tmp), for this user only, and writes its path to
// `path`. It is in the list, and locked, until cleanup_forget(path). Before that it removes unlocked folders
// of the same name: SIGKILL has left them. Where the system cannot lock the folder, it is NAME.nolock.XXXXXX,
// and SIGKILL leaves it for good.
bool temporary_folder_make(const char *name, char path[PATH_MAX], struct problem *problem);

// ---- without memory -----------------------------------------------------------------------------

// Ends the program with a message, exit code 1, and without temporary files. Async-signal-safe.
void out_of_memory_end(void) __attribute__((noreturn));

// Libraries that do not check their allocations use invalid pointers if one fails. Between these calls, a
// fault while errno is ENOMEM ends the program as above. Where `library` is the name of the only code between
// them, so does any other fault; where it is NULL, others end the program as usual. Pairs may be nested.
void out_of_memory_guard(const char *library);
void out_of_memory_unguard(void);

#ifdef __cplusplus
} // extern "C"

// For std::terminate; any other exception that nothing catches is a defect.
inline void out_of_memory_terminate() {
    try {
        if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::bad_alloc &) {
        out_of_memory_end();
    } catch (...) {
        std::abort();
    }
    out_of_memory_end();
}

// For modules that use simdjson: it allocates in functions that must not throw, which ends the program by
// std::terminate, and uses the result of `new (std::nothrow)` unchecked. So operator new ends the program.
inline void out_of_memory_ends() {
    std::set_terminate(out_of_memory_terminate);
    std::set_new_handler(out_of_memory_end);
}
#endif

#endif
