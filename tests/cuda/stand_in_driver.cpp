// A stand-in for libcuda.so.1, for machines without a GPU: memory is the host's, and kernels, which are
// compiled into it, run on the engine of fibers (engine.h), so that what launches and times them can be
// tried. Its times are those of a counter, and say nothing.
//
// Streams are queues. A launch whose kernel waits for other ranks (_tpN, or the barrier) runs when all ranks'
// streams have come to one, all together; anything else runs as soon as it is first. STAND_IN says what is
// there, in words: gpus=2 sm=90,80 driver=13000 no_peers memory_mib=100 granularity_kib=64 no_binary hang
// sticky multicast has_fabric (and fabric: that it may be used) no_files own_gpu (each process sees one, its
// own, by its rank in Open MPI) same_gpu (and it is the same for all) no_hidden_peers (mapped memory of
// another one is refused) hang_on=twoshot sticky_on=twoshot late_on=twoshot (such kernels run beside their
// stream, when all that can run has) held_blocks=4 (launches of so many blocks wait until they are told to
// give up) give_up_breaks (the GPU, when such a launch has been told) slow_host (launches take their time)
// slow_on=twoshot (such ones take longer than any delay) slow_after=8 (but for the first 8) paced_ms=20
// paced=75 (a GPU does one thing in that time, so many times) broken_rank=1 broken_after=3 (this rank in Open
// MPI records no event any more once it has asked for so many times) slow_links=MS (so long takes a copy
// between GPUs) team_fails (to bind memory to it) real_clock (times are those of the host) no_slope
// (whatever is timed takes as long) other_gpu (its name is another).
//
// It refuses what a real one does, as far as is known of that: work without a context or with another GPU's,
// grids of no blocks, what may not be called during a capture, sizes and addresses that are no multiple of
// what memory is dealt out in, handles of a type that was not asked for. Addresses that are reserved and not
// mapped, or mapped and not granted, cannot be touched. A GPU holds OF_EACH x MULTIPROCESSORS blocks at once;
// copies to memory that is not pinned, and giving memory back, wait for the GPU, however long.
#include "engine.h"

#include "arguments.h"
#include "parameters.h"

#include <cuda.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

extern "C" bool engine_joint;
bool engine_joint;

namespace {

constexpr int OF_EACH = 2, MULTIPROCESSORS = 8;

struct Event {
    int gpu = 0;
    bool has_time = true;
    int recorded = 0, reached = 0; // how often; it is done when all are
    double at_ms = 0;
};

struct Op {
    std::function<void()> run;      // alone
    Event *awaits = nullptr;        // not before this one is there,
    int awaited = 0;                // recorded so often
    const uint32_t *flag = nullptr; // or not before this one is `least`
    uint32_t least = 0;
    void (*kernel)(const void *) = nullptr;   // or a kernel,
    std::shared_ptr<std::vector<char>> bytes; // with its parameters
    unsigned blocks = 1, ranks = 1, threads = 1;
    int meets = 0; // how many launches, one of each stream, have to meet; 0: it runs alone
    void (*together)(void **arguments, int count) = nullptr; // once for all of them, in place of a kernel
    void *argument = nullptr;
    unsigned correlation = 0; // of a launch that somebody watches
    int gpu = 0;
};

struct Stream {
    int gpu = 0;
    std::deque<Op> queue;
    std::vector<Op> *capture = nullptr;
    pthread_t capturing = {}; // the thread
    bool is_invalid = false;  // the capture
};
struct Module {
    bool is_there;
};
// Memory that other processes can map: of a file without a name.
struct Memory {
    void *address;
    size_t bytes;
    int file;
    bool is_imported;
    int gpu;
    bool is_counted; // as taken from this GPU; what others have is not
    unsigned types;  // of handles that others may get
};
// Addresses, most of them of nothing; or of mapped memory.
struct Range {
    CUdeviceptr address;
    size_t bytes;
};
struct Team {
    EngineMulticast ranks;
    size_t bytes;
    unsigned types; // of handles that others may get
    std::vector<CUdevice> gpus;
};

std::mutex lock;
std::vector<Stream *> streams;
std::deque<Op> late; // what runs beside its stream
std::vector<Memory *> memories;
std::vector<Team *> teams;
std::vector<Range> reservations, mappings;
std::vector<Range> pinned;                // of the host's memory
std::set<const std::vector<Op> *> graphs; // ready to be launched
double clock_ms = 0;
constexpr size_t MOST_GPUS = 16;
size_t used_bytes[MOST_GPUS] = {}; // of each GPU
int times_told = 0;
bool is_broken = false;           // for good, by a kernel
unsigned (*launched)() = nullptr; // who watches launches, and what ran
void (*ran)(unsigned correlation, unsigned long long from_ns, unsigned long long to_ns) = nullptr;

unsigned long long now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}
thread_local int current_gpu = -1; // without a context
thread_local int captures = 0;     // that this thread has begun

// The value of a word of STAND_IN; "" for a word without one; NULL: it is not there.
const char *setting(const char *name) {
    static thread_local char value[64];
    const char *text = std::getenv("STAND_IN");
    size_t length = std::strlen(name);
    for (const char *at = text ? text : ""; *at != '\0';) {
        size_t word = std::strcspn(at, " ");
        if (std::strncmp(at, name, length) == 0 && (word == length || at[length] == '=')) {
            std::snprintf(value, sizeof value, "%.*s", int(word > length ? word - length - 1 : 0),
                          word > length ? at + length + 1 : "");
            return value;
        }
        at += word + (at[word] == ' ');
    }
    return nullptr;
}

int number(const char *name, int otherwise) {
    const char *value = setting(name);
    return value ? std::atoi(value) : otherwise;
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

// ---- running ----------------------------------------------------------------------------------------------

// Runs launches that meet each other together, or one alone.
void run_together(const std::vector<Op *> &ops) {
    EngineRun run;
    bool joint = ops[0]->ranks > 1;
    run.ranks = joint ? int(ops[0]->ranks) : int(ops.size());
    run.launches = 1;
    run.seed = 1 + uint64_t(clock_ms);
    run.programmatic = false;
    run.resident = OF_EACH * MULTIPROCESSORS;
    run.one_gpu = joint || (ops.size() > 1 && ops[0]->gpu == ops[1]->gpu);
    run.stalls = false;
    run.shape = [&](int rank, int) {
        const Op *op = joint ? ops[0] : ops[size_t(rank)];
        return EngineLaunch{op->blocks, op->threads};
    };
    run.body = [&](int rank, int) {
        const Op *op = joint ? ops[0] : ops[size_t(rank)];
        op->kernel(op->bytes->data());
    };
    engine_joint = joint;
    if (engine_run(run).end == EngineEnd::deadlock) std::fprintf(stderr, "stand-in: kernels wait for ever\n");
    clock_ms += 0.001;
}

void pop(Stream *stream) {
    stream->queue.pop_front();
    clock_ms += 0.001;
}

// Whether the name of a kernel has the word of a setting in it.
template <class Kernel> bool is_named(Kernel kernel, const char *name) {
    Dl_info what;
    const char *word = setting(name);
    void *address = reinterpret_cast<void *>(kernel);
    return word && address && dladdr(address, &what) && what.dli_sname && std::strstr(what.dli_sname, word);
}

// Where a launch looks whether it is to give up.
const uint32_t *give_up_of(const Op &op) {
    Dl_info what;
    void *kernel = reinterpret_cast<void *>(op.kernel);
    const char *name = dladdr(kernel, &what) && what.dli_sname ? what.dli_sname : "";
    if (std::strstr(name, "_exchange_") || std::strstr(name, "_reduce_scatter_"))
        return reinterpret_cast<const ExchangeCall *>(op.bytes->data())->give_up;
    return reinterpret_cast<const CallParameters *>(op.bytes->data())->give_up;
}

// Whether the GPU has not done yet what it does before the next thing.
bool is_pausing() {
    static unsigned long long since_ns = 0;
    static int left = number("paced", 0);
    unsigned long long pace_ns = 1000000ull * (unsigned long long)number("paced_ms", 0), now = now_ns();
    if (left == 0) return false;
    if (now - since_ns < pace_ns) return true;
    since_ns = now;
    left--;
    return false;
}

// Whether the host holds it.
bool is_held(const Op &op) {
    return op.flag && int32_t(__atomic_load_n(op.flag, __ATOMIC_ACQUIRE) - op.least) < 0;
}

bool hangs(const Op &op) {
    return is_named(op.kernel, "hang_on");
}

void run_late() {
    while (!late.empty()) {
        run_together({&late.front()});
        late.pop_front();
    }
}

// Runs whatever can run.
void pump() {
    for (bool moved = true; moved;) {
        moved = false;
        std::vector<Stream *> waiting;
        for (Stream *stream : streams) {
            while (!stream->queue.empty() && stream->queue.front().meets <= 1) {
                Op &op = stream->queue.front();
                if (hangs(op) || is_held(op)) break;
                if (op.awaits && op.awaits->reached < op.awaited) break;
                if (is_pausing()) return;
                if (op.flag && setting("give_up_breaks")) is_broken = true;
                if (op.awaits || op.flag) {
                    // it is there
                } else if (op.together) {
                    unsigned long long from_ns = now_ns();
                    op.together(&op.argument, 1);
                    if (ran && op.correlation) ran(op.correlation, from_ns, now_ns());
                } else if (op.kernel) {
                    run_together({&op});
                } else {
                    op.run();
                }
                pop(stream);
                moved = true;
            }
            if (stream->queue.empty()) continue;
            const Op &first = stream->queue.front();
            if (!first.awaits && !first.flag && !hangs(first)) waiting.push_back(stream);
        }
        if (waiting.empty() || waiting.size() < size_t(waiting[0]->queue.front().meets) || setting("hang"))
            continue;
        std::vector<Op *> ops;
        std::vector<void *> arguments;
        for (Stream *stream : waiting) ops.push_back(&stream->queue.front());
        for (Op *op : ops) arguments.push_back(op->argument);
        if (ops[0]->together) {
            ops[0]->together(arguments.data(), int(arguments.size()));
        } else {
            run_together(ops);
        }
        for (Stream *stream : waiting) pop(stream);
        moved = true;
    }
    run_late();
}

CUresult enqueue(CUstream of, Op op) {
    std::lock_guard<std::mutex> guard(lock);
    Stream *stream = reinterpret_cast<Stream *>(of);
    if (current_gpu < 0 || stream->gpu != current_gpu) return CUDA_ERROR_INVALID_CONTEXT;
    op.gpu = stream->gpu;
    if (stream->capture) {
        stream->capture->push_back(op);
    } else {
        stream->queue.push_back(op);
    }
    return CUDA_SUCCESS;
}

CUresult enqueue(CUstream of, std::function<void()> run) {
    Op op;
    op.run = run;
    return enqueue(of, op);
}

// A call that is not allowed while this thread captures: it spoils the capture.
bool spoils_capture() {
    std::lock_guard<std::mutex> guard(lock);
    for (Stream *stream : streams) {
        if (stream->capture && pthread_equal(stream->capturing, pthread_self())) stream->is_invalid = true;
    }
    return captures > 0;
}

// Returns from a call of the driver that has no business here.
#define REFUSE_WITHOUT_CONTEXT                                                                               \
    if (current_gpu < 0) return CUDA_ERROR_INVALID_CONTEXT
#define REFUSE_IN_CAPTURE                                                                                    \
    if (captures > 0 && spoils_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

// Waits until nothing is left to do in a stream, or, without one, on this GPU.
CUresult drain(const Stream *only) {
    for (;; usleep(100)) {
        std::lock_guard<std::mutex> guard(lock);
        pump();
        if (is_broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
        bool is_idle = true;
        for (const Stream *stream : streams) {
            bool counts = only ? stream == only : stream->gpu == current_gpu;
            is_idle = is_idle && (!counts || stream->queue.empty());
        }
        if (is_idle) return CUDA_SUCCESS;
    }
}

// ---- memory
// ---------------------------------------------------------------------------------------------------

Memory *map_file(int file, size_t bytes, int gpu) {
    void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) return nullptr;
    memories.push_back(new Memory{address, bytes, file, false, gpu, false, 0});
    return memories.back();
}

size_t all_bytes() {
    return size_t(number("memory_mib", 4096)) << 20;
}

// The pieces that memory is taken in; a team's, as recommended, are twice as large.
size_t granularity() {
    return size_t(number("granularity_kib", 64)) << 10;
}

size_t &used_of(int gpu) {
    return used_bytes[size_t(gpu < 0 ? 0 : gpu) % MOST_GPUS];
}

Memory *make_memory(size_t bytes, int gpu) {
    if (used_of(gpu) + bytes > all_bytes()) return nullptr;
    int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, off_t(bytes)) != 0) return nullptr;
    Memory *memory = map_file(file, bytes, gpu);
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

// Where another process finds it.
void put_path(char *path, const Memory *memory) {
    std::snprintf(path, 64, "/proc/%d/fd/%d", int(getpid()), memory->file);
}

Memory *open_path(const char *path) {
    struct stat info;
    int file = open(path, O_RDWR | O_CLOEXEC);
    return file < 0 || fstat(file, &info) != 0 ? nullptr : map_file(file, size_t(info.st_size), current_gpu);
}

bool is_team(CUmemGenericAllocationHandle handle) {
    bool found = false;
    for (Team *team : teams) found = found || CUmemGenericAllocationHandle(team) == handle;
    return found;
}

} // namespace

const EngineMulticast &engine_multicast_at(const Word4 *address) {
    static const EngineMulticast none = {};
    for (Team *team : teams) {
        const Word4 *first = team->ranks.base[0];
        if (address >= first && address < first + team->bytes / sizeof(Word4)) return team->ranks;
    }
    return none;
}

// ---- the driver
// ---------------------------------------------------------------------------------------------

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
// The place of a GPU in the machine, where not all are seen.
static int place_of(CUdevice device) {
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return device + (setting("own_gpu") && !setting("same_gpu") && rank ? std::atoi(rank) : 0);
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
    int sm = number_of("sm", device, 90);
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sm / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sm % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = MULTIPROCESSORS; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 16; break;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: *value = setting("multicast") != nullptr; break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: *value = setting("has_fabric") != nullptr; break;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *value = setting("no_files") == nullptr;
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

// ---- kernels ----

CUresult cuModuleLoadData(CUmodule *module, const void *) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    if (setting("no_binary")) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    static Module there{true};
    *module = reinterpret_cast<CUmodule>(&there);
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
    return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
    Dl_info self;
    dladdr(reinterpret_cast<void *>(&cuModuleUnload), &self);
    void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = reinterpret_cast<CUfunction>(dlsym(library, name));
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, size_t) {
    REFUSE_WITHOUT_CONTEXT;
    *blocks = OF_EACH;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **, void **extra) {
    Op op;
    Dl_info what;
    if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimY > 65535 || config->gridDimZ != 1 ||
        config->blockDimX == 0 || config->blockDimX > 1024 || config->blockDimY != 1 ||
        config->blockDimZ != 1 || function == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const char *bytes = static_cast<const char *>(extra[1]);
    size_t count = *static_cast<size_t *>(extra[3]);
    op.kernel = reinterpret_cast<void (*)(const void *)>(function);
    op.bytes = std::make_shared<std::vector<char>>(bytes, bytes + count);
    op.blocks = config->gridDimX;
    op.ranks = config->gridDimY;
    op.threads = config->blockDimX;
    if (op.blocks == unsigned(number("held_blocks", 0))) {
        op.flag = give_up_of(op);
        op.least = 1;
    }
    if (setting("sticky")) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (setting("slow_host")) usleep(200);
    if (is_named(function, "slow_on")) {
        static std::atomic<int> before;
        const char *after = setting("slow_after");
        if (before++ >= (after ? std::atoi(after) : 0)) usleep(150000);
    }
    if (is_named(function, "sticky_on")) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (dladdr(reinterpret_cast<void *>(function), &what) && what.dli_sname && op.ranks == 1) {
        const char *tp = std::strstr(what.dli_sname, "_tp");
        if (tp) op.meets = std::atoi(tp + 3);
        if (std::strstr(what.dli_sname, "_barrier")) {
            op.meets = reinterpret_cast<const BarrierParameters *>(op.bytes->data())->tp;
        }
    }
    if (op.ranks > 1 && is_named(function, "late_on")) {
        std::lock_guard<std::mutex> guard(lock);
        late.push_back(op);
        return CUDA_SUCCESS;
    }
    return enqueue(config->hStream, op);
}

// For the stand-in of NCCL: what `ranks` streams do together.
void stand_in_meet(CUstream stream, int ranks, void (*together)(void **, int), void *argument) {
    Op op;
    op.meets = ranks;
    op.together = together;
    op.argument = argument;
    if (launched) op.correlation = launched();
    enqueue(stream, op);
}

// Whether a graph has such a call.
int stand_in_is_captured(int (*is)(void *argument, const void *of), const void *of) {
    std::lock_guard<std::mutex> guard(lock);
    for (const std::vector<Op> *graph : graphs) {
        for (const Op &op : *graph) {
            if (op.together && is(op.argument, of)) return 1;
        }
    }
    return 0;
}

// For the stand-in of CUPTI.
void stand_in_watch(unsigned (*on_launch)(),
                    void (*on_end)(unsigned, unsigned long long, unsigned long long)) {
    launched = on_launch;
    ran = on_end;
}

// For those of libraries: what a call takes; that it broke the GPU; and the n-th number of a word of
// STAND_IN, 1 for a word without one: there is none beyond the last.
void stand_in_pass(float ms) {
    clock_ms += ms;
}
void stand_in_break(void) {
    is_broken = true;
}
int stand_in_number(const char *name, int n, int otherwise) {
    const char *value = setting(name);
    std::string rest = value ? value : "";
    for (; n > 0 && !rest.empty(); n--) {
        size_t comma = rest.find(',');
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    return value && rest.empty() && *value == '\0' ? 1 : rest.empty() ? otherwise : std::atoi(rest.c_str());
}

// ---- streams, events, graphs ----

CUresult cuStreamCreate(CUstream *stream, unsigned) {
    REFUSE_WITHOUT_CONTEXT;
    std::lock_guard<std::mutex> guard(lock);
    Stream *made = new Stream;
    made->gpu = current_gpu;
    streams.push_back(made);
    *stream = reinterpret_cast<CUstream>(made);
    return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    return priority < -5 || priority > 0 ? CUDA_ERROR_INVALID_VALUE : cuStreamCreate(stream, flags);
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    Op op;
    op.awaits = reinterpret_cast<Event *>(event);
    op.awaited = op.awaits->recorded;
    return enqueue(stream, op);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr flag, cuuint32_t least, unsigned) {
    Op op;
    op.flag = reinterpret_cast<const uint32_t *>(flag);
    op.least = least;
    return enqueue(stream, op);
}
CUresult cuStreamSynchronize(CUstream of) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    return drain(reinterpret_cast<Stream *>(of));
}
CUresult cuStreamDestroy(CUstream of) {
    std::lock_guard<std::mutex> guard(lock);
    for (size_t i = 0; i < streams.size(); i++) {
        if (streams[i] == reinterpret_cast<Stream *>(of)) streams.erase(streams.begin() + long(i));
    }
    delete reinterpret_cast<Stream *>(of);
    return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream of, CUstreamCaptureMode mode) {
    std::lock_guard<std::mutex> guard(lock);
    Stream *stream = reinterpret_cast<Stream *>(of);
    if (stream->gpu != current_gpu) return CUDA_ERROR_INVALID_CONTEXT;
    if (stream->capture || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = new std::vector<Op>;
    stream->capturing = pthread_self();
    stream->is_invalid = false;
    captures++;
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream of, CUgraph *graph) {
    std::lock_guard<std::mutex> guard(lock);
    Stream *stream = reinterpret_cast<Stream *>(of);
    *graph = nullptr;
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (!pthread_equal(stream->capturing, pthread_self())) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    captures--;
    if (stream->is_invalid) {
        delete stream->capture;
        stream->capture = nullptr;
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graph = reinterpret_cast<CUgraph>(stream->capture);
    stream->capture = nullptr;
    return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long) {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto *made = new std::vector<Op>(*reinterpret_cast<std::vector<Op> *>(graph));
    std::lock_guard<std::mutex> guard(lock);
    graphs.insert(made);
    *exec = reinterpret_cast<CUgraphExec>(made);
    return CUDA_SUCCESS;
}
CUresult cuGraphUpload(CUgraphExec, CUstream) {
    return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream of) {
    CUresult result = current_gpu < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    for (const Op &op : *reinterpret_cast<std::vector<Op> *>(exec)) {
        if (result == CUDA_SUCCESS) result = enqueue(of, op);
    }
    return result;
}
CUresult cuGraphDestroy(CUgraph graph) {
    delete reinterpret_cast<std::vector<Op> *>(graph);
    return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
    auto *graph = reinterpret_cast<std::vector<Op> *>(exec);
    std::lock_guard<std::mutex> guard(lock);
    graphs.erase(graph);
    delete graph;
    return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned flags) {
    REFUSE_WITHOUT_CONTEXT;
    Event *made = new Event;
    made->gpu = current_gpu;
    made->has_time = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *event = reinterpret_cast<CUevent>(made);
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
    delete reinterpret_cast<Event *>(event);
    return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent of, CUstream stream) {
    Event *event = reinterpret_cast<Event *>(of);
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (rank && std::atoi(rank) == number("broken_rank", -1) && times_told >= number("broken_after", 0))
        return CUDA_ERROR_LAUNCH_FAILED;
    if (event->gpu != reinterpret_cast<Stream *>(stream)->gpu) return CUDA_ERROR_INVALID_HANDLE;
    int number = ++event->recorded;
    return enqueue(stream, [event, number] {
        static const unsigned long long since_ns = now_ns();
        event->reached = number;
        event->at_ms = setting("real_clock") ? double(now_ns() - since_ns) / 1e6 : clock_ms;
    });
}
CUresult cuEventQuery(CUevent of) {
    REFUSE_IN_CAPTURE;
    std::lock_guard<std::mutex> guard(lock);
    pump();
    if (is_broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Event *event = reinterpret_cast<Event *>(of);
    return event->reached == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
    std::lock_guard<std::mutex> guard(lock);
    const Event *first = reinterpret_cast<Event *>(from), *last = reinterpret_cast<Event *>(to);
    if (!first->has_time || !last->has_time || first->recorded == 0 || last->recorded == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (first->reached != first->recorded || last->reached != last->recorded) return CUDA_ERROR_NOT_READY;
    *ms = setting("no_slope") ? 1 : float(last->at_ms - first->at_ms);
    times_told++;
    return CUDA_SUCCESS;
}

// ---- memory ----

static bool is_in(const std::vector<Range> &ranges, CUdeviceptr address, size_t bytes) {
    for (const Range &range : ranges) {
        if (address >= range.address && address + bytes <= range.address + range.bytes) return true;
    }
    return false;
}
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
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return enqueue(stream, [=] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); });
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult result = enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void *>(from), bytes); });
    if (result != CUDA_SUCCESS || captures > 0) return result;
    {
        std::lock_guard<std::mutex> guard(lock);
        if (is_in(pinned, CUdeviceptr(to), bytes)) return result;
    }
    return drain(reinterpret_cast<Stream *>(stream));
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument) {
    return enqueue(stream, [=] { function(argument); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return enqueue(stream, [=] {
        std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
        clock_ms += number("slow_links", 0);
    });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return enqueue(stream, [=] { std::memset(reinterpret_cast<void *>(to), value, count); });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    if (to % sizeof(unsigned) != 0) return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, [=] {
        for (size_t i = 0; i < count; i++) reinterpret_cast<unsigned *>(to)[i] = value;
    });
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
    if (pitch < width || pitch > 0x7fffffff || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, [=] {
        for (size_t row = 0; row < height; row++)
            std::memset(reinterpret_cast<char *>(to) + row * pitch, value, width);
    });
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
    for (size_t i = 0; i < teams.size(); i++) {
        if (CUmemGenericAllocationHandle(teams[i]) != handle) continue;
        delete teams[i];
        teams.erase(teams.begin() + long(i));
        return CUDA_SUCCESS;
    }
    drop_memory(reinterpret_cast<Memory *>(handle));
    return CUDA_SUCCESS;
}
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *team, const CUmulticastObjectProp *wanted) {
    std::lock_guard<std::mutex> guard(lock);
    if (!setting("multicast")) return CUDA_ERROR_NOT_SUPPORTED;
    if (wanted->numDevices < 2 || wanted->size == 0 || wanted->size % granularity() != 0 ||
        wanted->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    teams.push_back(new Team{{int(wanted->numDevices), {}}, wanted->size, unsigned(wanted->handleTypes), {}});
    *team = CUmemGenericAllocationHandle(teams.back());
    return CUDA_SUCCESS;
}
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice gpu) {
    std::lock_guard<std::mutex> guard(lock);
    Team *team = reinterpret_cast<Team *>(handle);
    for (CUdevice other : team->gpus) {
        if (other == gpu) return CUDA_ERROR_INVALID_DEVICE;
    }
    team->gpus.push_back(gpu);
    return team->gpus.size() > size_t(team->ranks.ranks) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
// Not before all have joined.
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t at, CUmemGenericAllocationHandle of,
                            size_t from, size_t bytes, unsigned long long flags) {
    std::lock_guard<std::mutex> guard(lock);
    Team *team = reinterpret_cast<Team *>(handle);
    Memory *memory = reinterpret_cast<Memory *>(of);
    if (team->gpus.size() != size_t(team->ranks.ranks)) return CUDA_ERROR_SYSTEM_NOT_READY;
    if (at != 0 || from != 0 || flags != 0 || bytes % granularity() != 0 || bytes > memory->bytes ||
        bytes > team->bytes || team->types != memory->types || setting("team_fails"))
        return CUDA_ERROR_INVALID_VALUE;
    team->ranks.base[memory->gpu] = static_cast<Word4 *>(memory->address);
    return CUDA_SUCCESS;
}
CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *wanted,
                                   CUmulticastGranularity_flags which) {
    *bytes = which == CU_MULTICAST_GRANULARITY_RECOMMENDED ? 2 * granularity() : granularity();
    return wanted->numDevices < 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
// The address of a team is that of its first memory; to reserve one comes first, so that it is filled in when
// the team is mapped.
static thread_local CUdeviceptr *reserved;
static thread_local bool reserves_imported;
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
    reserved = address;
    *address = CUdeviceptr(first);
    reservations.push_back({*address, bytes});
    return CUDA_SUCCESS;
}
// Takes the range out of a list; whether it was there.
static bool take_out(std::vector<Range> &ranges, CUdeviceptr address, size_t bytes) {
    for (size_t i = 0; i < ranges.size(); i++) {
        if (ranges[i].address != address || ranges[i].bytes != bytes) continue;
        ranges.erase(ranges.begin() + long(i));
        return true;
    }
    return false;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    if (memory_at(address) != nullptr) return CUDA_SUCCESS; // a team's
    if (is_in(mappings, address, 1) || !take_out(reservations, address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    munmap(reinterpret_cast<void *>(address), bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    std::lock_guard<std::mutex> guard(lock);
    reserves_imported = !is_team(handle) && reinterpret_cast<Memory *>(handle)->is_imported;
    if (address % granularity() != 0 || bytes % granularity() != 0 || offset != 0 || flags != 0 ||
        !is_in(reservations, address, bytes) || is_in(mappings, address, 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_team(handle)) {
        take_out(reservations, address, bytes);
        munmap(reinterpret_cast<void *>(address), bytes);
        *reserved = CUdeviceptr(reinterpret_cast<Team *>(handle)->ranks.base[0]);
        return *reserved == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    const Memory *memory = reinterpret_cast<Memory *>(handle);
    if (bytes > memory->bytes) return CUDA_ERROR_INVALID_VALUE;
    void *mapped =
        mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file, 0);
    if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    mappings.push_back({address, bytes});
    return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    if (memory_at(address) != nullptr) return CUDA_SUCCESS; // a team's
    if (!take_out(mappings, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
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
    if (reserves_imported && setting("no_hidden_peers")) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (memory_at(address) != nullptr) return CUDA_SUCCESS; // a team's
    if (!is_in(mappings, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    mprotect(reinterpret_cast<void *>(address), bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void *to, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
    Memory *memory = reinterpret_cast<Memory *>(handle);
    if ((memory->types & unsigned(type)) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
        put_path(static_cast<char *>(to), memory);
    } else {
        *static_cast<int *>(to) = dup(memory->file);
    }
    return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        CUmemAllocationHandleType type) {
    std::lock_guard<std::mutex> guard(lock);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", int(reinterpret_cast<intptr_t>(from)));
    Memory *memory = open_path(type == CU_MEM_HANDLE_TYPE_FABRIC ? static_cast<char *>(from) : path);
    *handle = CUmemGenericAllocationHandle(memory);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memory->is_imported = true;
    memory->types = type; // a real one exports it as what it came as
    return CUDA_SUCCESS;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    std::lock_guard<std::mutex> guard(lock);
    put_path(handle->reserved, memory_at(address));
    return CUDA_SUCCESS;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned) {
    std::lock_guard<std::mutex> guard(lock);
    Memory *memory = open_path(handle.reserved);
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *address = CUdeviceptr(memory->address);
    return CUDA_SUCCESS;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    return cuMemFree(address);
}
}
