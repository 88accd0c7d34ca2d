// Memory that all ranks reach; see device.h. Each rank makes physical memory on its GPU and maps it, and the
// other ranks map it as well:
//
//   loopback, process   addresses are the same for all threads of a process; access is granted to their GPUs
//   fabric              a handle that any process may import
//   file                a file descriptor, sent over a UNIX socket
//   ipc                 if none of these works: memory of cuMemAlloc, and its handle
//
// With multicast, a team of all GPUs binds the same memory, and one address reaches all of it.
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// What other ranks need to map a rank's memory.
union ticket {
    CUdeviceptr address;
    CUmemFabricHandle fabric;
    CUipcMemHandle ipc;
};

static bool fine(struct device *device, CUresult result, const char *what, char reason[REASON_SIZE]) {
    return driver_ok(device->driver, result, what, reason, REASON_SIZE);
}

static CUmemAllocationHandleType handle_type(const struct device *device) {
    return device->reach == REACH_FABRIC ? CU_MEM_HANDLE_TYPE_FABRIC
           : device->can_file            ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                         : CU_MEM_HANDLE_TYPE_NONE;
}

// All kinds of handles that work here: NCCL, which maps the memory once more for its symmetric windows,
// chooses one by itself.
static CUmemAllocationHandleType handle_types(const struct device *device) {
    unsigned types = CU_MEM_HANDLE_TYPE_NONE;
    if (device->can_fabric) types |= CU_MEM_HANDLE_TYPE_FABRIC;
    if (device->can_file) types |= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return (CUmemAllocationHandleType)types;
}

static CUmemAllocationProp properties(const struct device *device) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = handle_types(device),
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal},
                                 .allocFlags.gpuDirectRDMACapable = 0};
}

// ---- file descriptors ---------------------------------------------------------------------------------

// The abstract address of a rank's socket.
static socklen_t socket_address(const struct group *group, int rank, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "gentables-%016llx-%d",
                          (unsigned long long)group->run_id, rank);
    return (socklen_t)(sizeof address->sun_family + 1 + (size_t)length);
}

static bool send_file(const struct group *group, int from, int to_rank, int file) {
    struct sockaddr_un address;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    int rank = group->rank;
    struct iovec data = {.iov_base = &rank, .iov_len = sizeof rank};
    struct msghdr message = {.msg_name = &address,
                             .msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    message.msg_namelen = socket_address(group, to_rank, &address);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    return sendmsg(from, &message, 0) == (ssize_t)sizeof rank;
}

// A message that arrived: the rank that it names, its sender's user, and the descriptors that came with it.
struct arrival {
    int rank;
    uid_t user;
    int files[4];
    size_t file_count;
};

// Receives one message, of a rank or of any other process. False: `errno`.
static bool receive(int socket_of_rank, struct arrival *arrival) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    *arrival = (struct arrival){.rank = -1, .user = (uid_t)-1};
    struct iovec data = {.iov_base = &arrival->rank, .iov_len = sizeof arrival->rank};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t received = recvmsg(socket_of_rank, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return false;
    if (received != (ssize_t)sizeof arrival->rank) arrival->rank = -1;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at != NULL; at = CMSG_NXTHDR(&message, at)) {
        size_t bytes = at->cmsg_len - CMSG_LEN(0);
        if (at->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(at), sizeof sender);
            arrival->user = sender.uid;
        } else if (at->cmsg_type == SCM_RIGHTS && bytes <= sizeof arrival->files) {
            memcpy(arrival->files, CMSG_DATA(at), bytes); // more than one: of another program
            arrival->file_count = bytes / sizeof(int);
        }
    }
    errno = (message.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : EBADMSG; // no more may be open; no file
    return true;
}

// Receives a peer's descriptor into files[peer], and drops messages of other users, who can send to abstract
// addresses, too. False: `errno`.
static bool receive_file(const struct group *group, int socket_of_rank, int files[]) {
    uint64_t ends_ns = clock_ns() + (uint64_t)(group->timeout_s * 1e9);
    struct arrival arrival;
    while (receive(socket_of_rank, &arrival)) {
        bool is_peer = arrival.user == getuid();
        if (is_peer && arrival.rank >= 0 && arrival.rank < MAX_TP && arrival.file_count == 1) {
            files[arrival.rank] = arrival.files[0];
            return true;
        }
        int error = errno;
        for (size_t i = 0; i < arrival.file_count; i++) close(arrival.files[i]);
        errno = is_peer ? error : EAGAIN;
        if (is_peer || clock_ns() > ends_ns) return false;
    }
    return false;
}

static int open_socket(const struct group *group) {
    struct sockaddr_un address;
    socklen_t length = socket_address(group, group->rank, &address);
    struct timeval patience = {.tv_sec = (time_t)group->timeout_s + 1};
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(made, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)); // messages have their sender's user
    if (bind(made, (struct sockaddr *)&address, length) == 0) return made;
    int error = errno;
    close(made);
    errno = error;
    return -1;
}

// Collective. Whether all ranks are right; ranks that are not get a reason.
static bool all_sent(struct group *group, bool right, const char *what, int peer, char reason[REASON_SIZE]) {
    if (!right) {
        snprintf(reason, REASON_SIZE, "a file descriptor of memory, %s rank %d: %s", what, peer,
                 strerror(errno));
    }
    return group_min(group, right) != 0;
}

enum { EVERY_RANK = -1 };

// Collective. Exchanges descriptors: every rank's, or that of `sender` alone. files[], which is -1 everywhere
// at first, gets them as this process numbers them. Each rank sends to one and receives from one at a time,
// after all have sent, so that no rank waits for one that failed. False on all ranks: one of them has a
// `reason`.
static bool exchange_files(struct group *group, int sender, int mine, int files[], char reason[REASON_SIZE]) {
    int rank = group->rank, size = group->size, own = open_socket(group);
    bool right = all_sent(group, own >= 0, "the socket of", rank, reason);
    for (int step = 1; right && step < size; step++) {
        int to = (rank + step) % size, from = (rank - step + size) % size;
        bool sends = sender == EVERY_RANK || sender == rank, gets = sender == EVERY_RANK || sender == from;
        right = all_sent(group, !sends || send_file(group, own, to, mine), "to", to, reason) &&
                all_sent(group, !gets || receive_file(group, own, files), "from", from, reason);
    }
    if (own >= 0) close(own);
    return right;
}

static void close_files(int file, const int files[MAX_TP]) {
    for (int peer = 0; peer < MAX_TP; peer++) {
        if (files[peer] >= 0) close(files[peer]);
    }
    if (file >= 0) close(file);
}

// ---- mapping ----------------------------------------------------------------------------------------

// Grants access to the GPUs that use this address: this rank's, or, of ranks that are threads, all.
static CUresult grant(struct device *device, CUdeviceptr address, size_t bytes, bool for_all) {
    CUmemAccessDesc access[MAX_TP];
    size_t count = 0;
    for (int ordinal = 0; ordinal < (for_all ? device->group->size : 1); ordinal++) {
        access[count++] = (CUmemAccessDesc){
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = for_all ? ordinal : device->ordinal},
            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return device->driver->cuMemSetAccess(address, bytes, access, count);
}

static CUdeviceptr map_handle(struct device *device, CUmemGenericAllocationHandle handle, size_t bytes,
                              bool for_all, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    CUdeviceptr address = 0;
    CUresult result = driver->cuMemAddressReserve(&address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) result = driver->cuMemMap(address, bytes, 0, handle, 0);
    if (result == CUDA_SUCCESS) result = grant(device, address, bytes, for_all);
    if (fine(device, result, "mapping memory", reason)) return address;
    if (address != 0) {
        driver->cuMemUnmap(address, bytes); // if only the access was refused
        driver->cuMemAddressFree(address, bytes);
    }
    return 0;
}

// Whether memory was allocated; if not, the reason has the amount that is free.
static bool is_allocated(struct device *device, CUresult result, size_t bytes, const char *option,
                         char reason[REASON_SIZE]) {
    size_t left = 0, all = 0;
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return fine(device, result, "taking memory", reason);
    device->driver->cuMemGetInfo(&left, &all);
    snprintf(reason, REASON_SIZE,
             "out of memory on GPU %d: %zu KiB for a rank, and %zu are free; use a smaller %s",
             device->ordinal, bytes >> 10, left >> 10, option);
    return false;
}

// This rank's memory, zeroed.
static void make_own(struct device *device, struct shared_memory *memory, const char *option,
                     char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    int rank = device->group->rank;
    CUdeviceptr *own = &memory->of[rank];
    CUresult result;
    if (device->reach == REACH_IPC) {
        result = driver->cuMemAlloc(own, memory->bytes);
        if (!is_allocated(device, result, memory->bytes, option, reason)) return;
    } else {
        CUmemAllocationProp wanted = properties(device);
        result = driver->cuMemCreate(&memory->handles[rank], memory->bytes, &wanted, 0);
        if (!is_allocated(device, result, memory->bytes, option, reason)) return;
        *own =
            map_handle(device, memory->handles[rank], memory->bytes, device->reach == REACH_PROCESS, reason);
        if (*own == 0) return;
    }
    memory->is_mapped[rank] = true;
    if (fine(device, driver->cuMemsetD8Async(*own, 0, memory->bytes, device->stream), "clearing memory",
             reason) &&
        !device_finish(device)) {
        snprintf(reason, REASON_SIZE, "%s", group_failure(device->group));
    }
}

// Makes the ticket; or `file`, if memory is shared by descriptors.
static void make_ticket(struct device *device, const struct shared_memory *memory, union ticket *ticket,
                        int *file, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    CUmemGenericAllocationHandle handle = memory->handles[device->group->rank];
    CUdeviceptr own = memory->of[device->group->rank];
    CUresult result = CUDA_SUCCESS;
    *ticket = (union ticket){.address = own};
    if (device->reach == REACH_FABRIC) {
        result = driver->cuMemExportToShareableHandle(&ticket->fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0);
    } else if (device->reach == REACH_FILE) {
        result =
            driver->cuMemExportToShareableHandle(file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    } else if (device->reach == REACH_IPC) {
        result = driver->cuIpcGetMemHandle(&ticket->ipc, own);
    }
    fine(device, result, "sharing memory", reason);
}

static void map_peer(struct device *device, struct shared_memory *memory, int peer, union ticket *ticket,
                     int file, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    CUmemGenericAllocationHandle *handle = &memory->handles[peer];
    CUresult result = CUDA_SUCCESS;
    switch (device->reach) {
    case REACH_FABRIC:
        result = driver->cuMemImportFromShareableHandle(handle, &ticket->fabric, CU_MEM_HANDLE_TYPE_FABRIC);
        break;
    case REACH_FILE:
        result = driver->cuMemImportFromShareableHandle(handle, (void *)(intptr_t)file,
                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        break;
    case REACH_IPC:
        result =
            driver->cuIpcOpenMemHandle(&memory->of[peer], ticket->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        memory->is_mapped[peer] = fine(device, result, "opening a peer's memory", reason);
        return;
    default: memory->of[peer] = ticket->address; return;
    }
    if (!fine(device, result, "importing a peer's memory", reason)) return;
    memory->of[peer] = map_handle(device, *handle, memory->bytes, false, reason);
    memory->is_mapped[peer] = memory->of[peer] != 0;
}

// Collective. Maps every other rank's memory.
static bool map_peers(struct device *device, struct shared_memory *memory, char reason[REASON_SIZE]) {
    struct group *group = device->group;
    union ticket mine, tickets[MAX_TP];
    int file = -1, files[MAX_TP];
    memset(files, -1, sizeof files);
    make_ticket(device, memory, &mine, &file, reason);
    bool exchanged = ranks_are_fine(group, reason);
    if (exchanged && !group_exchange(group, &mine, sizeof mine, tickets)) {
        snprintf(reason, REASON_SIZE, "%s", group_failure(group));
        exchanged = false;
    }
    if (exchanged && device->reach == REACH_FILE)
        exchanged = exchange_files(group, EVERY_RANK, file, files, reason);
    for (int peer = 0; peer < group->size && exchanged && reason[0] == '\0'; peer++) {
        if (peer != group->rank) map_peer(device, memory, peer, &tickets[peer], files[peer], reason);
    }
    close_files(file, files);
    return ranks_are_fine(group, reason);
}

// ---- multicast ----------------------------------------------------------------------------------------

static CUmulticastObjectProp team_properties(const struct device *device, size_t bytes) {
    return (CUmulticastObjectProp){.numDevices = (unsigned)device->group->size,
                                   .size = bytes,
                                   .handleTypes = handle_types(device), // as the memory that it binds
                                   .flags = 0};
}

union team_ticket {
    CUmemGenericAllocationHandle handle;
    CUmemFabricHandle fabric;
};

// Makes rank 0's team, and the ticket with which the others join.
static void make_team(struct device *device, struct shared_memory *memory, union team_ticket *ticket,
                      int *file, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    CUmulticastObjectProp team = team_properties(device, memory->bytes);
    CUmemAllocationHandleType type = handle_type(device);
    void *to = type == CU_MEM_HANDLE_TYPE_FABRIC ? (void *)&ticket->fabric : (void *)file;
    CUresult result = driver->cuMulticastCreate(&memory->team, &team);
    if (result == CUDA_SUCCESS && !device->group->shares_process) {
        result = driver->cuMemExportToShareableHandle(to, memory->team, type, 0);
    } else if (result == CUDA_SUCCESS) {
        ticket->handle = memory->team;
    }
    fine(device, result, "a multicast team", reason);
}

// Imports the team on the other ranks, and joins it.
static void join_team(struct device *device, struct shared_memory *memory, union team_ticket *ticket,
                      int file, char reason[REASON_SIZE]) {
    const struct cuda_driver *driver = device->driver;
    struct group *group = device->group;
    CUresult result = CUDA_SUCCESS;
    if (group->rank != 0 && group->shares_process) memory->team = ticket->handle;
    if (group->rank != 0 && !group->shares_process) {
        void *from = device->reach == REACH_FABRIC ? (void *)&ticket->fabric : (void *)(intptr_t)file;
        result = driver->cuMemImportFromShareableHandle(&memory->team, from, handle_type(device));
    }
    if (result == CUDA_SUCCESS) result = driver->cuMulticastAddDevice(memory->team, device->id);
    fine(device, result, "joining a multicast team", reason);
}

// Collective. Rank 0's team on all ranks.
static bool open_team(struct device *device, struct shared_memory *memory, char reason[REASON_SIZE]) {
    struct group *group = device->group;
    union team_ticket ticket = {0};
    int file = -1, files[MAX_TP];
    memset(files, -1, sizeof files);
    if (group->rank == 0) make_team(device, memory, &ticket, &file, reason);
    bool passed = ranks_are_fine(group, reason);
    if (passed) group_broadcast(group, 0, &ticket, sizeof ticket);
    if (passed && device->reach == REACH_FILE) passed = exchange_files(group, 0, file, files, reason);
    if (passed) join_team(device, memory, &ticket, files[0], reason);
    close_files(file, files);
    return ranks_are_fine(group, reason);
}

// Collective. Without a multicast address only the strategies that need one are unavailable.
static void open_multicast(struct device *device, struct shared_memory *memory) {
    char *reason = memory->no_multicast;
    int rank = device->group->rank;
    if (!open_team(device, memory, reason)) return; // all have joined before any binds
    CUresult result =
        device->driver->cuMulticastBindMem(memory->team, 0, memory->handles[rank], 0, memory->bytes, 0);
    fine(device, result, "binding memory to a multicast team", reason);
    if (!ranks_are_fine(device->group, reason)) return;
    memory->multicast = map_handle(device, memory->team, memory->bytes, false, reason);
    if (!ranks_are_fine(device->group, reason)) memory->multicast = 0;
}

// ---- guarded memory -----------------------------------------------------------------------------------

void memory_give_back(struct device *device, struct guarded *buffer) {
    const struct cuda_driver *driver = device->driver;
    CUdeviceptr mapped = (CUdeviceptr)(uintptr_t)buffer->mapped;
    CUdeviceptr reserved = (CUdeviceptr)(uintptr_t)buffer->reserved;
    if (mapped != 0) driver->cuMemUnmap(mapped, buffer->mapped_bytes);
    if (buffer->handle != 0) driver->cuMemRelease(buffer->handle);
    if (reserved != 0) driver->cuMemAddressFree(reserved, buffer->reserved_bytes);
    *buffer = (struct guarded){0};
}

int memory_reserve(struct device *device, struct guarded *buffer, size_t bytes) {
    const struct cuda_driver *driver = device->driver;
    CUmemAllocationProp wanted = properties(device);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr reserved = 0, inner;
    size_t around = 2 << 20;
    driver->cuMemGetAllocationGranularity(&around, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    buffer->mapped_bytes = (bytes + around - 1) / around * around;
    buffer->reserved_bytes = buffer->mapped_bytes + 2 * around;
    if (driver->cuMemAddressReserve(&reserved, buffer->reserved_bytes, 0, 0, 0) != CUDA_SUCCESS) return -1;
    buffer->reserved = (unsigned char *)(uintptr_t)reserved;
    CUresult result = driver->cuMemCreate(&handle, buffer->mapped_bytes, &wanted, 0);
    if (result == CUDA_SUCCESS) buffer->handle = handle;
    inner = reserved + around;
    if (result == CUDA_SUCCESS) result = driver->cuMemMap(inner, buffer->mapped_bytes, 0, handle, 0);
    if (result == CUDA_SUCCESS) {
        buffer->mapped = (unsigned char *)(uintptr_t)inner;
        result = grant(device, inner, buffer->mapped_bytes, device->reach == REACH_PROCESS);
    }
    if (result == CUDA_SUCCESS) return 0;
    memory_give_back(device, buffer);
    return -1;
}

// ---- open and close -----------------------------------------------------------------------------------

// Large memory is of a size that a team can bind, too: NCCL makes teams of its own for its windows.
size_t shared_memory_granularity(const struct device *device, size_t bytes, bool multicast) {
    CUmemAllocationProp wanted = properties(device);
    size_t granularity = 2 << 20, of_team = 0;
    device->driver->cuMemGetAllocationGranularity(&granularity, &wanted,
                                                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (device->can_multicast) {
        CUmulticastObjectProp team =
            team_properties(device, (bytes + granularity - 1) / granularity * granularity);
        device->driver->cuMulticastGetGranularity(&of_team, &team, CU_MULTICAST_GRANULARITY_RECOMMENDED);
    }
    return of_team > granularity && (multicast || bytes >= of_team) ? of_team : granularity;
}

size_t shared_memory_rounded(const struct device *device, size_t bytes, bool multicast) {
    size_t granularity = shared_memory_granularity(device, bytes, multicast);
    return (bytes + granularity - 1) / granularity * granularity;
}

int shared_memory_open(struct device *device, size_t bytes, bool multicast, const char *option,
                       struct shared_memory *memory, char reason[REASON_SIZE]) {
    bool wanted = multicast;
    multicast = wanted && device->can_multicast && device->reach < REACH_IPC;
    *memory = (struct shared_memory){.bytes = shared_memory_rounded(device, bytes, multicast)};
    if (wanted && !multicast) {
        snprintf(memory->no_multicast, REASON_SIZE, "no multicast for memory of the kind: %s",
                 reach_names[device->reach]);
    }
    reason[0] = '\0';
    make_own(device, memory, option, reason);
    bool made = ranks_are_fine(device->group, reason);
    bool shared = made && (device->reach == REACH_NONE || map_peers(device, memory, reason));
    if (!shared) {
        shared_memory_close(device, memory);
        return made ? -2 : -1;
    }
    if (multicast) open_multicast(device, memory);
    return 0;
}

void shared_memory_close(struct device *device, struct shared_memory *memory) {
    const struct cuda_driver *driver = device->driver;
    group_barrier(device->group); // no rank uses it any more
    if (memory->multicast != 0) {
        driver->cuMemUnmap(memory->multicast, memory->bytes);
        driver->cuMemAddressFree(memory->multicast, memory->bytes);
    }
    for (int rank = 0; rank < device->group->size; rank++) {
        bool own = rank == device->group->rank;
        if (!memory->is_mapped[rank]) continue;
        if (device->reach == REACH_IPC) {
            if (own) driver->cuMemFree(memory->of[rank]);
            if (!own) driver->cuIpcCloseMemHandle(memory->of[rank]);
            continue;
        }
        driver->cuMemUnmap(memory->of[rank], memory->bytes);
        driver->cuMemAddressFree(memory->of[rank], memory->bytes);
    }
    for (int rank = 0; rank < device->group->size; rank++) {
        if (memory->handles[rank] != 0) driver->cuMemRelease(memory->handles[rank]);
    }
    bool owns_team = device->group->rank == 0 || !device->group->shares_process;
    if (memory->team != 0 && owns_team) driver->cuMemRelease(memory->team);
    *memory = (struct shared_memory){.bytes = 0};
}
