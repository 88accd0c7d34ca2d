// The part of fail_at inside the program: a library that is preloaded. Before main it installs a filter that
// sends the system calls of a class to fail_at, or starts to count the calls of the allocator, some of which
// return NULL. Calls of the dynamic loader before main are not counted, and programs that the program starts
// do not load this library.
#include "classes.h"
#include "shared.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

// glibc's own names of its allocator.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static struct shared *counted;    // NULL: allocations are not counted
static _Thread_local bool inside; // a call that is not counted: backtrace() allocates

// A hash of the functions that led here.
static uint64_t site(void) {
    enum { DEPTH = 10, OWN = 2 };
    void *frames[DEPTH];
    int count = backtrace(frames, DEPTH);
    uint64_t hash = 0xcbf29ce484222325;
    for (int i = OWN; i < count; i++) hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x100000001b3;
    return hash;
}

static bool fails(void) {
    if (counted == NULL || inside) return false;
    uint64_t number = atomic_fetch_add(&counted->calls, 1) + 1;
    if (counted->lists_sites && number <= MOST_SITES) {
        inside = true;
        counted->sites[number - 1] = site();
        inside = false;
    }
    bool due = number >= counted->fail_from && number <= counted->fail_to;
    if (due) errno = ENOMEM;
    return due;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

// Blocks can always become smaller; Lua relies on it.
void *realloc(void *block, size_t size) {
    bool grows = block == NULL || size > malloc_usable_size(block);
    return grows && fails() ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *made = aligned_alloc(alignment, size);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

// The loader ends the program if it finds no memory for some of its tables; that is not counted.
void *dlopen(const char *path, int mode) {
    static void *(*original)(const char *, int);
    if (original == NULL) {
        void *found = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&original, &found, sizeof original);
    }
    bool was_inside = inside;
    inside = true;
    void *loaded = original(path, mode);
    inside = was_inside;
    return loaded;
}

// ---- before main --------------------------------------------------------------------------------

static void give_up(const char *what) {
    perror(what);
    _exit(EXIT_FAILURE);
}

static void send_descriptor(int socket, int file) {
    char byte = 0;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof file)];
    } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = sizeof control.space;
    control.header = (struct cmsghdr){CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    if (sendmsg(socket, &message, 0) != 1) give_up("fail_at: sendmsg");
}

// Makes the kernel send the calls of the class to a listener, and the listener to `socket`.
static void send_calls(const struct call_class *class, int socket) {
    struct sock_filter code[2 * MOST_CALLS + 2];
    unsigned short length = 0;
    code[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (const int *call = class->calls; *call >= 0; call++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)*call, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("fail_at: prctl");
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0) give_up("fail_at: seccomp");
    send_descriptor(socket, (int)listener);
    close((int)listener);
    close(socket);
}

static int number_in(const char *variable) {
    const char *value = getenv(variable);
    return value == NULL ? -1 : (int)strtol(value, NULL, 10);
}

typedef int main_function(int, char **, char **);
static main_function *real_main;

static int counted_main(int argc, char **argv, char **environment) {
    const char *name = getenv(CLASS_VARIABLE);
    const struct call_class *class = name == NULL ? NULL : find_class(name);
    int socket = number_in(SOCKET_VARIABLE), file = number_in(SHARED_VARIABLE);
    void *page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) give_up("fail_at: mmap");
    close(file);
    static const char *const own[] = {CLASS_VARIABLE, SOCKET_VARIABLE, SHARED_VARIABLE, "LD_PRELOAD"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) unsetenv(own[i]);
    (void)site(); // loads what backtrace() needs
    if (class != NULL) {
        send_calls(class, socket);
    } else {
        close(socket);
        counted = page;
    }
    return real_main(argc, argv, environment);
}

// Replaces that of glibc, which calls main.
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end) {
    int (*start)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    void *found = dlsym(RTLD_NEXT, "__libc_start_main");
    memcpy(&start, &found, sizeof start);
    real_main = program;
    return start(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}
