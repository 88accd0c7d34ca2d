// The memory of the stand-in for libcuda.so.1: files without names, which other processes can map; addresses
// that are reserved and mapped; handles, and teams of a multicast. driver.cpp lists the rejected calls.
#include "queues.h"

#include "cuda/kernels/layer.h"
#include "engine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace stand_in;

size_t stand_in::all_bytes() {
    return size_t(number("memory_mib", 4096)) << 20;
}

namespace {

// Memory that other processes can map: a file without a name. That of a team of GPUs contains a Team.
struct Memory {
    void *address;
    size_t bytes;
    int file;
    bool is_imported;
    int gpu;
    bool is_counted; // whether it takes memory of the GPU; imported memory does not
    unsigned types;  // types of handles that can be exported
    bool is_team;
};
enum { PATH_SIZE = 64, MOST_MEMBERS = 16, NO_FILE = 999999 };
// The content of a team's file. Places are indices of GPUs in the machine.
struct Team {
    int size, joined;
    size_t bytes;
    unsigned types; // types of handles that were requested for it
    int places[MOST_MEMBERS];
    char paths[MOST_MEMBERS][PATH_SIZE]; // of the file of each member's memory; "": none is bound
};
// The memory of all members of a team, as this process has mapped it. That of the first is at the team's
// address.
struct Reach {
    size_t bytes;
    EngineMulticast ranks;
};
// Reserved or mapped addresses.
struct Range {
    CUdeviceptr address;
    size_t bytes;
    int file = -1; // that the addresses map from its start, and that no other mapping hides; -1: none
};

std::vector<Memory *> memories;
std::vector<Reach> reaches;
std::vector<Range> reservations, mappings;
std::vector<Range> pinned; // of the host's memory
constexpr size_t MOST_GPUS = 16;
size_t used_bytes[MOST_GPUS] = {}; // of each GPU

const char team_name[] = "stand-in-team"; // of a team's file, by which other processes recognise it

Memory *map_file(int file, size_t bytes, int gpu) {
    char name[PATH_SIZE] = "", link[PATH_SIZE];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (address == MAP_FAILED || readlink(link, name, sizeof name - 1) < 0) return nullptr;
    memories.push_back(
        new Memory{address, bytes, file, false, gpu, false, 0, std::strstr(name, team_name) != nullptr});
    return memories.back();
}

Memory *make_file(const char *name, size_t bytes, int gpu) {
    int file = memfd_create(name, MFD_CLOEXEC);
    return file < 0 || ftruncate(file, off_t(bytes)) != 0 ? nullptr : map_file(file, bytes, gpu);
}

// The granularity of memory; that recommended for teams is twice as large.
size_t granularity() {
    return size_t(number("granularity_kib", 64)) << 10;
}

size_t &used_of(int gpu) {
    return used_bytes[size_t(gpu < 0 ? 0 : gpu) % MOST_GPUS];
}

Memory *make_memory(size_t bytes, int gpu) {
    if (used_of(gpu) + bytes > all_bytes()) return nullptr;
    Memory *memory = make_file("stand-in", bytes, gpu);
    if (memory == nullptr) return nullptr;
    memory->is_counted = true;
    used_of(gpu) += bytes;
    return memory;
}

void drop_memory(Memory *memory) {
    for (size_t i = 0; i < memories.size(); i++) {
        if (memories[i] == memory) memories.erase(memories.begin() + long(i));
    }
    munmap(memory->address, memory->bytes);
    close(memory->file);
    if (memory->is_counted) used_of(memory->gpu) -= memory->bytes;
    delete memory;
}

Memory *memory_at(CUdeviceptr address) {
    for (Memory *memory : memories) {
        if (CUdeviceptr(memory->address) == address) return memory;
    }
    return nullptr;
}

// The path by which another process can open the memory's file.
void put_path(char *path, const Memory *memory) {
    std::snprintf(path, PATH_SIZE, "/proc/%d/fd/%d", int(getpid()), memory->file);
}

Memory *open_path(const char *path) {
    struct stat info;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) return nullptr;
    has_imported = true;
    return map_file(file, size_t(info.st_size), current_gpu);
}

Team *team_of(const Memory *memory) {
    return static_cast<Team *>(memory->address);
}

// The member at a place; -1: there is none.
int member_at(const Team *team, int place) {
    for (int i = 0; i < team->joined && i < team->size; i++) {
        if (team->places[i] == place) return i;
    }
    return -1;
}

// Maps the memory of all members of a team, in the order of their places, the first one at the address.
// Returns false if a member has bound none.
bool map_team(const Team *team, void *address, size_t bytes) {
    Reach reach = {bytes, {team->size, {}, true}};
    int found = 0;
    for (int place = 0; place < MOST_MEMBERS; place++) {
        int member = member_at(team, place);
        if (member < 0) continue;
        int file = open(team->paths[member], O_RDWR | O_CLOEXEC), fixed = found == 0 ? MAP_FIXED : 0;
        void *mapped =
            mmap(found == 0 ? address : nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, file, 0);
        if (file >= 0) close(file);
        if (mapped == MAP_FAILED) return false;
        reach.ranks.base[found++] = static_cast<Word4 *>(mapped);
    }
    reaches.push_back(reach);
    return found == team->size;
}

// Unmaps the memory of all members of a team but the first one, which the caller unmaps.
void unmap_team(CUdeviceptr address) {
    for (size_t i = 0; i < reaches.size(); i++) {
        Reach reach = reaches[i];
        if (CUdeviceptr(reach.ranks.base[0]) != address) continue;
        for (int rank = 1; rank < reach.ranks.ranks; rank++) munmap(reach.ranks.base[rank], reach.bytes);
        reaches.erase(reaches.begin() + long(i));
        return;
    }
}

bool is_within(const Range &range, CUdeviceptr address, size_t bytes) {
    return address >= range.address && address + bytes <= range.address + range.bytes;
}

bool is_in(const std::vector<Range> &ranges, CUdeviceptr address, size_t bytes) {
    for (const Range &range : ranges) {
        if (is_within(range, address, bytes)) return true;
    }
    return false;
}

} // namespace

InFile stand_in::in_file(CUdeviceptr address, size_t bytes) {
    for (const Range &range : mappings) {
        if (is_within(range, address, bytes)) return {range.file, off_t(address - range.address)};
    }
    return {-1, 0};
}

bool stand_in::is_pinned(const void *memory, size_t bytes) {
    return is_in(pinned, CUdeviceptr(memory), bytes);
}

const EngineMulticast &engine_multicast_at(const Word4 *address) {
    static const EngineMulticast none = {};
    for (const Reach &reach : reaches) {
        const Word4 *first = reach.ranks.base[0];
        if (address >= first && address < first + reach.bytes / sizeof(Word4)) return reach.ranks;
    }
    return none;
}

extern "C" {

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    std::lock_guard<std::mutex> guard(lock);
    *memory = std::calloc(1, bytes);
    pinned.push_back({CUdeviceptr(*memory), bytes});
    return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *memory, unsigned) {
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *memory) {
    CUresult result = drain(nullptr);
    if (result != CUDA_SUCCESS) return result;
    std::lock_guard<std::mutex> guard(lock);
    for (Range &range : pinned) {
        if (range.address == CUdeviceptr(memory)) range = {};
    }
    std::free(memory);
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    std::lock_guard<std::mutex> guard(lock);
    Memory *memory = make_memory(bytes, current_gpu);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = CUdeviceptr(memory->address);
    return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t *left, size_t *all) {
    std::lock_guard<std::mutex> guard(lock);
    *all = all_bytes();
    *left = *all - used_of(current_gpu);
    return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    CUresult drained = drain(nullptr);
    if (drained != CUDA_SUCCESS) return drained;
    std::lock_guard<std::mutex> guard(lock);
    Memory *memory = memory_at(address);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    drop_memory(memory);
    return CUDA_SUCCESS;
}
static bool is_possible(const CUmemAllocationProp *wanted) {
    return wanted->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE && wanted->location.id >= 0 &&
           wanted->location.id < number("gpus", 2);
}
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *wanted,
                                       CUmemAllocationGranularity_flags) {
    *bytes = granularity();
    return is_possible(wanted) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *wanted,
                     unsigned long long flags) {
    std::lock_guard<std::mutex> guard(lock);
    if (!is_possible(wanted) || bytes == 0 || bytes % granularity() != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((wanted->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0 && !setting("fabric"))
        return CUDA_ERROR_NOT_PERMITTED;
    if ((wanted->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 && setting("no_files"))
        return CUDA_ERROR_NOT_SUPPORTED;
    Memory *memory = make_memory(bytes, wanted->location.id);
    *handle = CUmemGenericAllocationHandle(memory);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    memory->types = wanted->requestedHandleTypes;
    return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    std::lock_guard<std::mutex> guard(lock);
    drop_memory(reinterpret_cast<Memory *>(handle));
    return CUDA_SUCCESS;
}
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *wanted) {
    std::lock_guard<std::mutex> guard(lock);
    if (!setting("multicast")) return CUDA_ERROR_NOT_SUPPORTED;
    if (wanted->numDevices < 2 || wanted->numDevices > MOST_MEMBERS || wanted->size == 0 ||
        wanted->size % granularity() != 0 || wanted->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    Memory *memory = make_file(team_name, sizeof(Team), current_gpu);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    memory->types = unsigned(wanted->handleTypes);
    Team *team = team_of(memory);
    team->size = int(wanted->numDevices);
    team->bytes = wanted->size;
    team->types = memory->types;
    *handle = CUmemGenericAllocationHandle(memory);
    return CUDA_SUCCESS;
}
// Members may join at any time, and from other processes.
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice gpu) {
    std::lock_guard<std::mutex> guard(lock);
    Team *team = team_of(reinterpret_cast<Memory *>(handle));
    if (member_at(team, place_of(gpu)) >= 0) return CUDA_ERROR_INVALID_DEVICE;
    int member = __atomic_fetch_add(&team->joined, 1, __ATOMIC_ACQ_REL);
    if (member >= team->size) return CUDA_ERROR_INVALID_VALUE;
    team->places[member] = place_of(gpu);
    return CUDA_SUCCESS;
}
// Fails before all members have joined.
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t at, CUmemGenericAllocationHandle of,
                            size_t from, size_t bytes, unsigned long long flags) {
    std::lock_guard<std::mutex> guard(lock);
    Memory *memory = reinterpret_cast<Memory *>(of);
    Team *team = team_of(reinterpret_cast<Memory *>(handle));
    int member = member_at(team, place_of(memory->gpu));
    if (__atomic_load_n(&team->joined, __ATOMIC_ACQUIRE) != team->size) return CUDA_ERROR_SYSTEM_NOT_READY;
    if (at != 0 || from != 0 || flags != 0 || bytes % granularity() != 0 || bytes > memory->bytes ||
        bytes > team->bytes || team->types != memory->types || member < 0 || setting("team_fails"))
        return CUDA_ERROR_INVALID_VALUE;
    put_path(team->paths[member], memory);
    return CUDA_SUCCESS;
}
CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *wanted,
                                   CUmulticastGranularity_flags which) {
    *bytes = which == CU_MULTICAST_GRANULARITY_RECOMMENDED ? 2 * granularity() : granularity();
    return wanted->numDevices < 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static thread_local bool maps_imported;
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
    std::lock_guard<std::mutex> guard(lock);
    if (bytes == 0 || bytes % granularity() != 0 || (alignment & (alignment - 1)) != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *range =
        mmap(nullptr, bytes + granularity(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t before = (granularity() - CUdeviceptr(range) % granularity()) % granularity();
    char *first = static_cast<char *>(range) + before;
    if (before > 0) munmap(range, before);
    munmap(first + bytes, granularity() - before);
    *address = CUdeviceptr(first);
    reservations.push_back({*address, bytes});
    return CUDA_SUCCESS;
}
// Removes a range from a list. Returns whether the list had it.
static bool take_out(std::vector<Range> &ranges, CUdeviceptr address, size_t bytes) {
    for (size_t i = 0; i < ranges.size(); i++) {
        if (ranges[i].address != address || ranges[i].bytes != bytes) continue;
        if (ranges[i].file >= 0) close(ranges[i].file);
        ranges.erase(ranges.begin() + long(i));
        return true;
    }
    return false;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    if (is_in(mappings, address, 1) || !take_out(reservations, address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    munmap(reinterpret_cast<void *>(address), bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    std::lock_guard<std::mutex> guard(lock);
    const Memory *memory = reinterpret_cast<Memory *>(handle);
    maps_imported = !memory->is_team && memory->is_imported;
    if (address % granularity() != 0 || bytes % granularity() != 0 || offset != 0 || flags != 0 ||
        !is_in(reservations, address, bytes) || is_in(mappings, address, 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > (memory->is_team ? team_of(memory)->bytes : memory->bytes)) return CUDA_ERROR_INVALID_VALUE;
    void *at = reinterpret_cast<void *>(address);
    int shared = memory->is_imported && is_rank("private_rank") ? MAP_PRIVATE : MAP_SHARED;
    if (memory->is_team) {
        if (!map_team(team_of(memory), at, bytes)) return CUDA_ERROR_SYSTEM_NOT_READY;
        mprotect(at, bytes, PROT_NONE);
    } else if (mmap(at, bytes, PROT_NONE, shared | MAP_FIXED, memory->file, 0) == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    bool is_whole = !memory->is_team && shared == MAP_SHARED;
    mappings.push_back({address, bytes, is_whole ? fcntl(memory->file, F_DUPFD_CLOEXEC, 0) : -1});
    return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    if (!take_out(mappings, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    unmap_team(address);
    mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count) {
    std::lock_guard<std::mutex> guard(lock);
    if (count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
            access[i].location.id >= number("gpus", 2) ||
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (maps_imported && setting("no_hidden_peers")) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (!is_in(mappings, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    mprotect(reinterpret_cast<void *>(address), bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void *to, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
    const Memory *memory = reinterpret_cast<Memory *>(handle);
    if ((memory->types & unsigned(type)) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
        put_path(static_cast<char *>(to), memory);
    } else {
        bool is_bad = setting(memory->is_team ? "bad_team" : "bad_files") != nullptr;
        *static_cast<int *>(to) = is_bad ? NO_FILE : fcntl(memory->file, F_DUPFD_CLOEXEC, 0);
    }
    return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        CUmemAllocationHandleType type) {
    std::lock_guard<std::mutex> guard(lock);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", int(reinterpret_cast<intptr_t>(from)));
    if (type == CU_MEM_HANDLE_TYPE_FABRIC && setting("own_fabric")) return CUDA_ERROR_NOT_PERMITTED;
    Memory *memory = open_path(type == CU_MEM_HANDLE_TYPE_FABRIC ? static_cast<char *>(from) : path);
    *handle = CUmemGenericAllocationHandle(memory);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memory->is_imported = true;
    memory->types = type; // a real driver exports it again by this type alone
    return CUDA_SUCCESS;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    std::lock_guard<std::mutex> guard(lock);
    if (setting("no_ipc")) return CUDA_ERROR_NOT_SUPPORTED;
    put_path(handle->reserved, memory_at(address));
    return CUDA_SUCCESS;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned) {
    std::lock_guard<std::mutex> guard(lock);
    if (setting("no_hidden_peers")) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    Memory *memory = open_path(handle.reserved);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *address = CUdeviceptr(memory->address);
    return CUDA_SUCCESS;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    return cuMemFree(address);
}
}
