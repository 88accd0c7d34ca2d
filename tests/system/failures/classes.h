// The classes of system calls that fail_at can make fail, and the error of each.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

enum { MOST_CALLS = 6 };

// Calls that an architecture lacks repeat another one of their class.
#ifndef SYS_open
#define SYS_open   SYS_openat
#define SYS_rename SYS_renameat2
#define SYS_link   SYS_linkat
#define SYS_mkdir  SYS_mkdirat
#define SYS_fork   SYS_clone
#define SYS_vfork  SYS_clone
#define SYS_pipe   SYS_pipe2
#define SYS_chmod  SYS_fchmod
#endif
#ifndef SYS_renameat
#define SYS_renameat SYS_renameat2
#endif

static const struct call_class {
    const char *name;
    int error;
    int calls[MOST_CALLS]; // ends with -1
} call_classes[] = {
    {"open", EMFILE, {SYS_open, SYS_openat, -1}},
    {"read", EIO, {SYS_read, SYS_pread64, SYS_readv, -1}},
    {"write", ENOSPC, {SYS_write, SYS_pwrite64, SYS_writev, -1}},
    {"fsync", EIO, {SYS_fsync, SYS_fdatasync, -1}},
    {"rename", EROFS, {SYS_rename, SYS_renameat, SYS_renameat2, -1}},
    {"link", EDQUOT, {SYS_link, SYS_linkat, -1}},
    {"mkdir", EDQUOT, {SYS_mkdir, SYS_mkdirat, -1}},
    {"chmod", EPERM, {SYS_chmod, SYS_fchmod, SYS_fchmodat, -1}},
    {"list", EIO, {SYS_getdents64, -1}},
    {"lock", ENOLCK, {SYS_flock, SYS_fcntl, -1}},
    {"mmap", ENOMEM, {SYS_mmap, SYS_mremap, -1}},
    {"fork", EAGAIN, {SYS_fork, SYS_vfork, SYS_clone, SYS_clone3, -1}},
    {"exec", EACCES, {SYS_execve, -1}},
    {"pipe", ENFILE, {SYS_pipe, SYS_pipe2, -1}},
};

// NULL for an unknown name.
static inline const struct call_class *find_class(const char *name) {
    for (size_t i = 0; i < sizeof call_classes / sizeof *call_classes; i++) {
        if (strcmp(call_classes[i].name, name) == 0) return &call_classes[i];
    }
    return NULL;
}
