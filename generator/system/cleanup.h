// Temporary files and folders: none outlives this process. Each is in one list until it is removed or
// renamed; if SIGINT, SIGTERM or SIGHUP ends the process, a handler removes them. SIGKILL leaves them.
#ifndef GENTABLES_CLEANUP_H
#define GENTABLES_CLEANUP_H

// Adds a path to the list. A signal between the making of a file and this call leaves the file: block signals
// (signals_block of child.h) around both.
void cleanup_add(const char *path);
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

#endif
