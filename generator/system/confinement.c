// Limits and a seccomp filter; see confinement.h.
#include "confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__ && defined __AARCH64EL__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0 // unknown: nothing is confined
#endif

enum {
    CPU_SECONDS = 60,
    MOST_CALLS = 64,
    WRITES = O_ACCMODE | O_CREAT | O_TRUNC, // flags of open without which a file is only read
};

// Calls that are harmless with all arguments.
static const int harmless[] = {
    SYS_brk,
    SYS_clock_gettime,
    SYS_close,
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_faccessat,
    SYS_fstat,
    SYS_futex,
    SYS_getpid,
    SYS_getrandom,
    SYS_gettid,
    SYS_lseek,
    SYS_madvise,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_newfstatat,
    SYS_pread64,
    SYS_read,
    SYS_readv,
    SYS_readlinkat,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_sigaltstack,
    SYS_statx,
    SYS_uname,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS_access // old calls, which newer architectures lack
    SYS_access,
#endif
#ifdef SYS_readlink
    SYS_readlink,
#endif
#ifdef SYS_stat
    SYS_stat,
#endif
};

// Calls that are harmless while (argument & mask) == 0, of the lower and upper half of an argument.
static const struct masked {
    int call;
    unsigned argument;
    uint32_t low, high;
} masked[] = {
    {SYS_openat, 2, WRITES, 0},
#ifdef SYS_open
    {SYS_open, 1, WRITES, 0},
#endif
    {SYS_write, 0, ~UINT32_C(3), 0}, // 0 to 3, which it inherits; others are open for reading only
    {SYS_writev, 0, ~UINT32_C(3), 0},
    {SYS_prlimit64, 2, UINT32_MAX, UINT32_MAX}, // reads a limit if there is no new one
};

struct program {
    struct sock_filter code[8 * MOST_CALLS];
    unsigned short length;
};

static void add(struct program *program, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    program->code[program->length++] = (struct sock_filter){code, if_true, if_false, value};
}

static void add_load(struct program *program, size_t offset) {
    add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(struct program *program, uint32_t action) {
    add(program, BPF_RET | BPF_K, action, 0, 0);
}

static void add_masked(struct program *program, const struct masked *one) {
    size_t low = offsetof(struct seccomp_data, args) + one->argument * sizeof(uint64_t);
    const uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
    add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)one->call, 0, 6);
    add_load(program, low); // both architectures are little-endian
    add(program, BPF_JMP | BPF_JSET | BPF_K, one->low, 2, 0);
    add_load(program, low + sizeof(uint32_t));
    add(program, BPF_JMP | BPF_JSET | BPF_K, one->high, 0, 1);
    add_return(program, refused);
    add_return(program, SECCOMP_RET_ALLOW);
}

static void fill(struct program *program) {
    program->length = 0;
    add_load(program, offsetof(struct seccomp_data, arch));
    add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    add_return(program, SECCOMP_RET_KILL_PROCESS);
    add_load(program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)harmless[i], 0, 1);
        add_return(program, SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < sizeof masked / sizeof *masked; i++) add_masked(program, &masked[i]);
    add_return(program, SECCOMP_RET_ERRNO | EPERM);
}

static int limit(int resource, rlim_t most) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return errno;
    if (limit.rlim_max > most) limit.rlim_max = most;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0 ? 0 : errno;
}

// Descriptors beside stdin, stdout and stderr end with the next exec.
static void leave_descriptors(void) {
    enum { MOST = 1024 };
    if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
    for (int file = 3; file < MOST; file++) fcntl(file, F_SETFD, FD_CLOEXEC);
}

bool confinement_exists(void) {
    // A filter at NULL is an error of its address only where filters exist.
    return ARCHITECTURE != 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != 0 &&
           errno == EFAULT;
}

int limit_resources(void) {
    int problem = limit(RLIMIT_AS, (rlim_t)2 << 30);
    if (problem == 0) problem = limit(RLIMIT_FSIZE, (rlim_t)256 << 20);
    return problem == 0 ? limit(RLIMIT_CORE, 0) : problem;
}

int confine(void) {
    struct program program;
    int problem = limit(RLIMIT_AS, (rlim_t)1 << 30);
    if (problem == 0) problem = limit(RLIMIT_CPU, CPU_SECONDS);
    if (problem == 0) problem = limit(RLIMIT_FSIZE, 0);
    if (problem == 0) problem = limit(RLIMIT_CORE, 0);
    if (problem != 0) return problem;
    if (ARCHITECTURE == 0) return ENOSYS;
    leave_descriptors();
    fill(&program);
    struct sock_fprog filter = {program.length, program.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0 ? 0 : errno;
}
