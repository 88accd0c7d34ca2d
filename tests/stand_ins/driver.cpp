// A stand-in for libcuda.so.1, for machines without a GPU: memory is the host's, and kernels, which are
// compiled into it, run on the engine of fibers (engine.h), so that what launches and times them can be
// tried. Its times are those of a counter, and mean nothing.
//
// Streams are queues. The launch of a kernel that waits for other ranks (_tpN, or the barrier) runs when all
// ranks' streams have come to one, all together, or, where ranks are processes, in each by itself: there it
// waits for writes of other processes to shared memory, and stands still as often as it only waits. Anything
// else runs as soon as it is first. STAND_IN is a list of settings: gpus=2 sm=90,80 driver=13000 ptx=80
// binary=80 (kernels were compiled from and for such) no_peers memory_mib=100 granularity_kib=64 no_binary
// reads_images (refuses what is no fatbin; without it images are not read) hang sticky multicast has_fabric
// (and fabric: that it may be used; own_fabric: not by who imports it) no_files (has_files: but a device
// says that it can) bad_files (what is exported is no descriptor; bad_team: of a team) no_ipc own_gpu (each
// process sees one, its own, by its rank in Open MPI) same_gpu (and it is the same for all) no_hidden_peers
// (mapped memory of another one is refused) hang_on=twoshot sticky_on=twoshot late_on=twoshot (such kernels
// run beside their stream, when all that can run has) held_blocks=4 (launches of so many blocks wait for the
// flag to give up) give_up_breaks (the GPU, when such a launch has the flag) slow_host (launches take their
// time) slow_on=twoshot (such ones take longer than any delay) slow_after=8 (but for the first 8)
// paced_ms=20 paced=75 (a GPU does one thing in that time, so many times) slow_links=MS (so long takes a
// copy between GPUs) team_fails (to bind memory to it) real_clock (times are those of the host) no_slope
// (whatever is timed takes as long) graph_ms=MS (a graph takes so much longer) lazy_graph=8 (graphs of fewer
// operations leave out their last) other_gpu (its name is another) boasts (it reports twice as many resident
// blocks as it holds) multiprocessors=8,4 (so many does each GPU report) no_clusters no_programmatic (such
// launches are refused).
//
// Of ranks that are Open MPI's processes: broken_rank=1 broken_after=3 (this one records no event any more
// once it has asked for so many times) dead_rank=1 stopped_rank=1 after_kernels=3 (this one is killed, or
// stopped, when its next kernel would meet others'; once=FILE: unless that is there) wrong_rank=1
// wrong_on=twoshot (what such a kernel writes there first is wrong) private_rank=1 (what this one imports is
// a copy).
//
// It refuses what a real one does, as far as is known of that: work without a context or with another GPU's,
// grids of no blocks, what may not be called during a capture, sizes and addresses that are no multiple of
// what memory is dealt out in, handles of a type that was not asked for. Addresses that are reserved and not
// mapped, or mapped and not granted, cannot be touched. A GPU holds OF_EACH x MULTIPROCESSORS blocks at once,
// and is broken by launches that wait for each other and are more, those that may be there early included;
// copies to memory that is not pinned, and giving memory back, wait for the GPU, however long.
//
// Here are the settings and the GPUs; queues.cpp runs streams and kernels, streams.cpp has the calls on
// streams, events and graphs, memory.cpp those on memory.
#include "driver.h"

#include "queues.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace stand_in {

std::mutex lock;
double clock_ms = 0;
thread_local int current_gpu = -1;
thread_local int captures = 0;

// The words of STAND_IN, which is read once: settings are looked up at each poll.
static std::vector<std::pair<std::string, std::string>> words_of(const char *text) {
    std::vector<std::pair<std::string, std::string>> words;
    while (text && *text != '\0') {
        std::string word(text, std::strcspn(text, " "));
        size_t equals = word.find('=');
        std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        words.emplace_back(word.substr(0, equals), value);
        text += word.size() + (text[word.size()] == ' ');
    }
    return words;
}

const char *setting(const char *name) {
    static const auto *words = new auto(words_of(std::getenv("STAND_IN")));
    for (const auto &word : *words) {
        if (word.first == name) return word.second.c_str();
    }
    return nullptr;
}

int number(const char *name, int otherwise) {
    const char *value = setting(name);
    return value ? std::atoi(value) : otherwise;
}

bool is_rank(const char *name) {
    static const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return rank && std::atoi(rank) == number(name, -1);
}

// The n-th of the numbers of a setting, or the last one.
int number_of(const char *name, int n, int otherwise) {
    const char *value = setting(name);
    if (!value) return otherwise;
    std::string rest = value;
    int found = otherwise;
    for (int i = 0; i <= n && !rest.empty(); i++) {
        found = std::atoi(rest.c_str());
        size_t comma = rest.find(',');
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    return found;
}

int place_of(CUdevice device) {
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return device + (setting("own_gpu") && !setting("same_gpu") && rank ? std::atoi(rank) : 0);
}

} // namespace stand_in

using namespace stand_in;

extern "C" {

CUresult cuDriverGetVersion(int *version) {
    *version = number("driver", CUDA_VERSION);
    return CUDA_SUCCESS;
}
CUresult cuInit(unsigned) {
    return number("gpus", 2) == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **name) {
    static thread_local char number[32];
    std::snprintf(number, sizeof number, "CUDA_ERROR %d", int(error));
    *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : number;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **words) {
    *words = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the stand-in";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
    *count = setting("own_gpu") ? 1 : number("gpus", 2);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal < number("gpus", 2) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice) {
    std::snprintf(name, size_t(length), "stand-in GPU%s", setting("other_gpu") ? " of another kind" : "");
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char *bus, int length, CUdevice device) {
    std::snprintf(bus, size_t(length), "0000:%02x:00.0", unsigned(place_of(device)));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus) {
    char of_one[32];
    int count;
    cuDeviceGetCount(&count);
    for (*device = 0; *device < count; ++*device) {
        cuDeviceGetPCIBusId(of_one, sizeof of_one, *device);
        if (std::strcmp(of_one, bus) == 0) return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    std::memset(uuid, 7, sizeof *uuid);
    uuid->bytes[0] = char(place_of(device));
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
    *bytes = all_bytes();
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    int sm = number_of("sm", place_of(device), 90);
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sm / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sm % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = number_of("multiprocessors", place_of(device), MULTIPROCESSORS);
        break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = sm >= 90; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 16; break;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: *value = setting("multicast") != nullptr; break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: *value = setting("has_fabric") != nullptr; break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *value = setting("no_files") == nullptr || setting("has_files") != nullptr;
        break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice, CUdevice) {
    *can = setting("no_peers") == nullptr;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = reinterpret_cast<CUcontext>(intptr_t(device) + 1);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    current_gpu = int(reinterpret_cast<intptr_t>(context) - 1);
    return CUDA_SUCCESS;
}
}
