// Whether ranks that are processes reach each other's memory: each fills its own, and reads that of all
// others. Run under mpirun with the stand-in of the driver; prints the way in which memory was shared. With
// STRANGER=UID, which only root can use, a process of that user sends messages to each socket first.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/device/device.h"
#include "ranks/group_mpi.h"

enum { BYTES = 5000 };

// Sends messages with a descriptor, as a rank does, and without one. Never returns.
static void send_as(uid_t user, const struct sockaddr *address, socklen_t length) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    int rank = 0, files[2] = {open("/dev/null", O_RDONLY), 0}, from = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct iovec data = {.iov_base = &rank, .iov_len = sizeof rank};
    struct msghdr message = {
        .msg_name = (void *)(uintptr_t)address, .msg_namelen = length, .msg_iov = &data, .msg_iovlen = 1};
    if (setuid(user) != 0 || sendmsg(from, &message, 0) < 0) _exit(1);
    for (size_t count = 1; count <= 2; count++) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
        memcpy(CMSG_DATA(&control.header), files, count * sizeof(int));
        if (sendmsg(from, &message, 0) < 0) _exit(1);
    }
    _exit(0);
}

// In place of libc's: a socket with an abstract address has the stranger's messages before any other.
int bind(int socket_of_rank, const struct sockaddr *address, socklen_t length) {
    int bound = (int)syscall(SYS_bind, socket_of_rank, address, length), status = 0;
    const char *user = getenv("STRANGER");
    if (bound != 0 || user == NULL || address->sa_family != AF_UNIX || address->sa_data[0] != '\0')
        return bound;
    pid_t child = fork();
    if (child == 0) send_as((uid_t)atoi(user), address, length);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the stranger could not send\n");
        exit(2);
    }
    return 0;
}

// The number of open descriptors.
static int open_files(void) {
    int count = 0;
    for (int file = 0; file < 1024; file++) count += fcntl(file, F_GETFD) >= 0;
    return count;
}

// The number of peers with memory that differs from what they wrote.
static int wrong_peers(struct device *device, const struct shared_memory *memory) {
    unsigned char seen[BYTES], expected[BYTES];
    int wrong = 0;
    for (int peer = 0; peer < device->group->size; peer++) {
        if (device->reach == REACH_NONE && peer != device->group->rank) continue;
        memset(expected, peer + 1, sizeof expected);
        memset(seen, 0, sizeof seen);
        device->driver->cuMemcpyDtoHAsync(seen, memory->of[peer], sizeof seen, device->stream);
        if (!device_finish(device)) return 1;
        wrong += memcmp(seen, expected, sizeof seen) != 0;
    }
    return wrong;
}

static int try_memory(struct device *device) {
    struct group *group = device->group;
    struct shared_memory memory;
    char reason[REASON_SIZE];
    int before = open_files();
    if (shared_memory_open(device, BYTES, false, "--arena", &memory, reason) != 0) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    device->driver->cuMemsetD8Async(memory.of[group->rank], (unsigned char)(group->rank + 1), BYTES,
                                    device->stream);
    int wrong = !device_finish(device) || !group_barrier(group) || wrong_peers(device, &memory) > 0;
    shared_memory_close(device, &memory);
    if (open_files() == before) return wrong;
    fprintf(stderr, "%d files were open, and now %d\n", before, open_files());
    return 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct group group;
    struct device_options options = {.workspace_bytes = 65536};
    char reason[REASON_SIZE] = "";
    int status = 1;
    if (group_open(&group, MPI_COMM_WORLD, 20, reason, sizeof reason) == 0 &&
        device_open(&group, &options, reason) == 0) {
        status = try_memory(device_of(&group));
        if (group.rank == 0) printf("%s\n", reach_names[device_of(&group)->reach]);
        device_close(&group);
    } else {
        fprintf(stderr, "%s\n", reason);
    }
    MPI_Finalize();
    return status;
}
