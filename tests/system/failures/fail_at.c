// Runs a program in which the N-th call of a class fails once.
//
//   fail_at LIBRARY CLASS FROM TO SECONDS OUT ERR PROGRAM ARGUMENT...
//
//   LIBRARY   fail_in.c
//   CLASS     one of classes.h, or "allocation", or "site": counts allocations, and prints the number of the
//             first one of each place in the code, with a hash of it (lines `site NUMBER HASH`)
//   FROM, TO  numbers of the calls that fail, from 1; 0 0: none
//   SECONDS   the deadline
//   OUT, ERR  files for its stdout and stderr
//
// Calls of the program and of its forks are counted, but not those of other programs that it starts. The last
// line is `calls COUNT end exit|signal|timeout NUMBER left PROCESSES`.
#include "classes.h"
#include "shared.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 20,    // between two looks at the children
    GRACE_MS = 3000, // for forks that outlive the program
};

struct run {
    const char *program;
    const struct call_class *class; // NULL: the allocator
    struct shared *shared;
    int listener; // -1: none
    pid_t pid;
    int ends; // becomes readable at the end of the program
    bool has_ended, is_late;
    int status, left;
};

static void give_up(const char *what) {
    perror(what);
    exit(EXIT_FAILURE);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int receive_descriptor(int socket) {
    char byte;
    int file = -1;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof file)];
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = sizeof control.space;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL) memcpy(&file, CMSG_DATA(header), sizeof file);
    return file;
}

// ---- start --------------------------------------------------------------------------------------

static void redirect(const char *path, int to) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (file < 0) give_up(path);
    dup2(file, to);
    close(file);
}

static void set_number(const char *variable, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(variable, text, 1);
}

static struct shared *share(int *file) {
    *file = memfd_create("fail_at", 0);
    if (*file < 0 || ftruncate(*file, sizeof(struct shared)) != 0) give_up("fail_at: memory");
    void *page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    if (page == MAP_FAILED) give_up("fail_at: memory");
    return page;
}

static void start(struct run *run, char **argv) {
    int sockets[2], page;
    run->shared = share(&page);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) give_up("fail_at: socketpair");
    run->class = find_class(argv[2]);
    run->shared->fail_from = strtoull(argv[3], NULL, 10);
    run->shared->fail_to = strtoull(argv[4], NULL, 10);
    run->shared->lists_sites = strcmp(argv[2], "site") == 0;
    fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
    run->pid = fork();
    if (run->pid < 0) give_up("fail_at: fork");
    if (run->pid == 0) {
        setsid();
        personality(ADDR_NO_RANDOMIZE); // Lua's order of keys depends on addresses
        redirect(argv[6], STDOUT_FILENO), redirect(argv[7], STDERR_FILENO);
        set_number(SHARED_VARIABLE, page), set_number(SOCKET_VARIABLE, sockets[1]);
        setenv(CLASS_VARIABLE, argv[2], 1), setenv("LD_PRELOAD", argv[1], 1);
        setenv("LD_BIND_NOW", "1", 1); // the loader has nothing to do later
        execv(argv[8], argv + 8);
        give_up(argv[8]);
    }
    close(page);
    close(sockets[1]);
    run->ends = (int)syscall(SYS_pidfd_open, run->pid, 0);
    run->listener = run->class == NULL ? -1 : receive_descriptor(sockets[0]);
    close(sockets[0]);
}

// ---- calls --------------------------------------------------------------------------------------

// Whether a process runs the program, not another one that it started.
static bool is_counted(const struct run *run, pid_t pid) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return false;
    path[length] = '\0';
    return strcmp(path, run->program) == 0;
}

// fcntl is counted where it locks.
static bool is_of_class(const struct seccomp_data *data) {
    switch (data->nr == SYS_fcntl ? (int)data->args[1] : F_SETLK) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW: return true;
    default: return false;
    }
}

static void answer(const struct run *run) {
    struct seccomp_notif call = {0};
    if (ioctl(run->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return; // its process was killed
    struct seccomp_notif_resp response = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (is_of_class(&call.data) && is_counted(run, (pid_t)call.pid)) {
        uint64_t number = ++run->shared->calls;
        if (number >= run->shared->fail_from && number <= run->shared->fail_to) {
            response.flags = 0;
            response.error = -run->class->error;
        }
    }
    ioctl(run->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

// Reaps children that have ended. Returns whether there are others.
static bool reap(struct run *run) {
    for (int status;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) return pid == 0;
        if (pid != run->pid) continue;
        run->has_ended = true;
        run->status = status;
    }
}

// Kills all processes below this one.
static void kill_all(struct run *run) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    do {
        FILE *children = fopen(path, "re");
        int pid;
        while (children != NULL && fscanf(children, "%d", &pid) == 1) {
            run->left++;
            kill(pid, SIGKILL);
        }
        if (children != NULL) fclose(children);
    } while (waitpid(-1, NULL, 0) > 0);
}

// Answers calls until all processes have ended, or their time is over.
static void supervise(struct run *run, double seconds) {
    double deadline = now() + seconds;
    bool ended = false;
    while (reap(run)) {
        if (run->has_ended && !ended) {
            ended = true;
            deadline = now() + GRACE_MS / 1e3;
        }
        if (now() > deadline) break;
        struct pollfd polled[2] = {{run->listener, POLLIN, 0}, {run->has_ended ? -1 : run->ends, POLLIN, 0}};
        poll(polled, 2, TICK_MS);
        if ((polled[0].revents & POLLIN) != 0) answer(run);
        if ((polled[0].revents & POLLHUP) != 0) {
            close(run->listener); // no process is left
            run->listener = -1;
        }
    }
    run->is_late = !run->has_ended;
    kill_all(run);
}

// ---- report -------------------------------------------------------------------------------------

struct place {
    uint64_t site, number;
};

static int compare(const void *left, const void *right) {
    const struct place *a = left, *b = right;
    if (a->site != b->site) return a->site < b->site ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void print_sites(const struct shared *shared) {
    size_t count = shared->calls < MOST_SITES ? shared->calls : MOST_SITES;
    struct place *places = calloc(count + 1, sizeof *places);
    if (places == NULL) give_up("fail_at");
    for (size_t i = 0; i < count; i++) places[i] = (struct place){shared->sites[i], i + 1};
    qsort(places, count, sizeof *places, compare);
    for (size_t i = 0; i < count; i++) {
        bool is_first = i == 0 || places[i].site != places[i - 1].site;
        if (is_first)
            printf("site %llu %llx\n", (unsigned long long)places[i].number,
                   (unsigned long long)places[i].site);
    }
    free(places);
}

static void print_end(const struct run *run) {
    const char *how = run->is_late ? "timeout" : WIFSIGNALED(run->status) ? "signal" : "exit";
    int number = run->is_late               ? 0
                 : WIFSIGNALED(run->status) ? WTERMSIG(run->status)
                                            : WEXITSTATUS(run->status);
    printf("calls %llu end %s %d left %d\n", (unsigned long long)run->shared->calls, how, number,
           run->is_late ? 0 : run->left);
}

int main(int argc, char **argv) {
    if (argc < 9) {
        fprintf(stderr, "usage: fail_at LIBRARY CLASS FROM TO SECONDS OUT ERR PROGRAM ARGUMENT...\n");
        return 2;
    }
    char *program = realpath(argv[8], NULL);
    struct run run = {.program = program, .listener = -1};
    if (program == NULL) give_up(argv[8]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(&run, argv);
    if (run.class != NULL && run.listener < 0) {
        fprintf(stderr, "fail_at: %s cannot be supervised\n", argv[8]);
        kill_all(&run);
        return EXIT_FAILURE;
    }
    supervise(&run, strtod(argv[5], NULL));
    if (run.shared->lists_sites) print_sites(run.shared);
    print_end(&run);
    free(program);
    return 0;
}
