// A stand-in for libcuda.so.1, for tests without a GPU: memory is the host's, and kernels are compiled into
// it and run on the engine of fibers (engine.h). Times are those of a counter, without a meaning.
//
// Streams are queues of operations; an operation runs when it is the first in its stream. But the launch of a
// kernel that waits for other ranks (_tpN in its name, or the barrier) runs together with those of all ranks,
// when the streams of all have come to such a launch. If ranks are processes, each runs its own launch, which
// waits for writes of the others to shared memory, and pauses whenever it only waits.
//
// It rejects what a real driver is known to reject: work without a context or with that of another GPU, grids
// of no blocks, calls that are forbidden during a capture, sizes and addresses that are no multiple of the
// granularity, handles of a type that was not requested. Addresses that are reserved but not mapped, or
// mapped without access, cannot be used. A GPU holds OF_EACH x MULTIPROCESSORS blocks at once; launches of
// more blocks that wait for each other break it, including launches that may start early. A thread of a
// programmatic launch that touches memory before it waits for the launch ahead ends the program. Copies to
// memory that is not pinned, and freeing memory, wait for the GPU without a limit.
//
// STAND_IN is a list of settings with spaces between them; all are off by default. Those with KERNEL concern
// the kernels with this text in their names, such as twoshot.
//
//   gpus=2 sm=90,80 driver=13000    number of GPUs, SM version of each, version of the driver
//   memory_mib=100 granularity_kib=64   the memory of each GPU
//   module_loading=EAGER  the driver starts only with this value of CUDA_MODULE_LOADING; LAZY is its default
//   multiprocessors=8,4   the numbers that the GPUs report
//   clusters=4,0          the numbers of clusters of any size that the GPUs report
//   boasts                a multiprocessor reports twice as many resident blocks as it holds
//   other_gpu             the GPUs have another name
//   own_gpu               each process sees one GPU, by its rank in Open MPI; with same_gpu all see the same
//   no_peers              no GPU can access another one's memory
//   no_hidden_peers       access to memory of other processes is rejected
//   memset_ms=1,5         time of a memset on each GPU, which delays its stream and those that meet it
//   slow_links=MS         time of a copy between GPUs
//   ptx=80 binary=80      versions that kernels were compiled from and for (default: the GPU's)
//   no_binary, old_ptx    images have no code for the GPU, or only PTX of a later compiler than the driver's
//   reads_images          images must be fatbins; without it they are not read
//   no_clusters, no_programmatic   such launches are rejected
//   hang, hang_on=KERNEL        kernels that meet others, or these, never end
//   sticky, sticky_on=KERNEL    all launches, or these, fail
//   late_on=KERNEL        joint launches run beside their stream, after everything else that can run
//   slow_host             launches take longer
//   slow_on=KERNEL slow_after=8   after the first 8 of them, launches take longer than any delay
//   paced_ms=20 paced=75  before each of the next 75 operations the process waits until 20 ms have passed
//   held_blocks=4         launches of 4 blocks do not run, and wait for their flag to give up
//   gemms_wait            GEMMs have blocks that wait for each other: joint launches that could occupy all
//                         multiprocessors do not run, and wait for their flag to give up
//   give_up_breaks        that flag breaks the GPU
//   real_clock            times are those of the host
//   no_slope              all times between two events are equal
//   graph_ms=MS           each launch of a graph takes so much longer
//   lazy_graph=8          graphs of fewer than 8 operations leave out their last one
//   multicast, team_fails GPUs support multicast; binding memory to a team fails
//   has_fabric, fabric    devices report fabric handles; memory for them can be allocated
//   own_fabric            fabric handles cannot be imported
//   no_files, has_files   file descriptors do not work; with both, devices report that they do
//   bad_files, bad_team   exported descriptors of memory, or of teams, are invalid
//   no_ipc                CUDA IPC does not work
//
// Settings of one rank, if ranks are processes of Open MPI:
//
//   broken_rank=1 broken_after=3   it cannot record events after it has read 3 times
//   dead_rank=1, stopped_rank=1 after_kernels=3 once=FILE   it is killed, or stopped, before its fourth
//                         kernel that meets others, unless the file exists; the file is made
//   wrong_rank=1 wrong_on=KERNEL   the first word of the kernel's output is wrong
//   private_rank=1        memory that it imports is a copy
//
// This file has the settings and the GPUs; queues.cpp runs streams and kernels, streams.cpp has the calls on
// streams, events and graphs, memory.cpp those on memory, copies.cpp copies.
#include "driver.h"

#include "queues.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>
#include <utility>
#include <vector>

namespace stand_in {

std::mutex lock;
double clock_ms = 0;
thread_local int current_gpu = -1;
bool has_imported = false;
thread_local int captures = 0;

// The settings of STAND_IN, which is read once, because each poll looks up settings.
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
    mallopt(M_TRIM_THRESHOLD, 256 << 20); // each launch frees the blocks of the one before
    const char *wanted = setting("module_loading"), *loading = std::getenv("CUDA_MODULE_LOADING");
    if (wanted && std::strcmp(wanted, loading ? loading : "LAZY") != 0) return CUDA_ERROR_INVALID_VALUE;
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
