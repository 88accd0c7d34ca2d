// A stand-in for libcuda.so.1, for machines without a GPU: memory is the host's, and kernels, which are
// compiled into it, run on the engine of fibers (engine.h), so that what launches and times them can be
// tried. Its times are those of a counter, and mean nothing.
//
// Streams are queues. The launch of a kernel that waits for other ranks (_tpN, or the barrier) runs when all
// ranks' streams have come to one, all together, or, where ranks are processes, in each by itself: there it
// waits for writes of other processes to shared memory, and stands still as often as it only waits. Anything
// else runs as soon as it is first. STAND_IN is a list of settings: gpus=2 sm=90,80 driver=13000
// no_peers memory_mib=100 granularity_kib=64 no_binary reads_images (refuses what is no fatbin; without
// it images are not read) hang sticky multicast has_fabric (and fabric: that it may be used; own_fabric: not
// by who imports it) no_files (has_files: but a device says that it can)
// bad_files (what is exported is no descriptor; bad_team: of a team) no_ipc own_gpu (each process sees one,
// its own, by its rank in Open MPI) same_gpu (and it is the same for all) no_hidden_peers (mapped memory of
// another one is refused) hang_on=twoshot sticky_on=twoshot late_on=twoshot (such kernels run beside their
// stream, when all that can run has) held_blocks=4 (launches of so many blocks wait for the flag to give
// up) give_up_breaks (the GPU, when such a launch has the flag) slow_host (launches take their time)
// slow_on=twoshot (such ones take longer than any delay) slow_after=8 (but for the first 8) paced_ms=20
// paced=75 (a GPU does one thing in that time, so many times) slow_links=MS (so long takes a copy between
// GPUs) team_fails (to bind memory to it) real_clock (times are those of the host) no_slope (whatever is
// timed takes as long) graph_ms=MS (a graph takes so much longer) lazy_graph=8 (graphs of fewer operations
// leave out their last) other_gpu (its name is another) boasts (it reports twice as many resident blocks as
// it holds).
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
#include "driver.h"

#include "cuda/kernels/arguments.h"
#include "cuda/kernels/parameters.h"
#include "engine.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" bool engine_joint;
bool engine_joint;

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

} // namespace stand_in

using namespace stand_in;

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
    bool is_programmatic = false; // it may start while the launch ahead is still there,
    unsigned ahead = 0;           // which has so many blocks
    int meets = 0;                // how many launches, one of each stream, have to meet; 0: it runs alone
    void (*together)(void **arguments, int count) = nullptr; // once for all of them, in place of a kernel
    int (*attempt)(void *argument) = nullptr;                // or what is tried until it is done
    void *argument = nullptr;
    unsigned long long from_ns = 0; // when it was first tried
    unsigned correlation = 0;       // of a launch that somebody watches
    int gpu = 0;
};

struct Stream {
    int gpu = 0;
    std::deque<Op> queue;
    std::vector<Op> *capture = nullptr;
    pthread_t capturing = {}; // the thread
    bool is_invalid = false;  // the capture
    unsigned last_blocks = 0; // of the launch that was enqueued last; 0: something else was
};
struct Module {
    bool is_there;
};
std::vector<Stream *> streams;
std::deque<Op> late;                      // what runs beside its stream
std::set<const std::vector<Op> *> graphs; // ready to be launched
int times_told = 0;
const Op *under_way = nullptr;                   // a kernel that waits for those of other processes
bool is_broken = false;                          // for good, by a kernel
unsigned (*launched)(bool by_runtime) = nullptr; // who watches launches, and what ran
void (*ran)(unsigned correlation, unsigned long long from_ns, unsigned long long to_ns) = nullptr;

unsigned long long now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
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

// Whether ranks are processes, of Open MPI's.
bool has_processes() {
    static const char *const size = std::getenv("OMPI_COMM_WORLD_SIZE");
    return size && std::atoi(size) > 1;
}

// Runs launches that meet each other together, or one alone. `has_others`: which meets those of other
// processes, and may stand still for them.
EngineEnd run_together(const std::vector<Op *> &ops, bool has_others = false) {
    EngineRun run;
    run.has_others = has_others;
    bool joint = ops[0]->ranks > 1;
    run.ranks = joint ? int(ops[0]->ranks) : int(ops.size());
    run.launches = 1;
    run.seed = 1 + uint64_t(clock_ms);
    run.programmatic = false;
    run.resident = OF_EACH * MULTIPROCESSORS;
    run.one_gpu = joint || (ops.size() > 1 && ops[0]->gpu == ops[1]->gpu);
    run.preempts = false; // the tests of the kernels explore the orders of accesses
    run.stalls = false;
    run.shape = [=](int rank, int) {
        const Op *op = joint ? ops[0] : ops[size_t(rank)];
        return EngineLaunch{op->blocks, op->threads};
    };
    run.body = [=](int rank, int) {
        const Op *op = joint ? ops[0] : ops[size_t(rank)];
        op->kernel(op->bytes->data());
    };
    engine_joint = joint;
    clock_ms += 0.001;
    EngineEnd end = engine_run(run).end;
    if (end == EngineEnd::deadlock) std::fprintf(stderr, "stand-in: kernels wait for ever\n");
    return end;
}

// The name of a kernel, "" where it has none. Looked up once: polls ask for it.
template <class Kernel> const char *name_of(Kernel kernel) {
    thread_local std::map<void *, const char *> names;
    void *address = reinterpret_cast<void *>(kernel);
    auto [at, is_new] = names.try_emplace(address, "");
    Dl_info what;
    if (is_new && address && dladdr(address, &what) && what.dli_sname) at->second = what.dli_sname;
    return at->second;
}

// Whether the name of a kernel has the word of a setting in it.
template <class Kernel> bool is_named(Kernel kernel, const char *name) {
    const char *word = setting(name);
    return word && kernel && std::strstr(name_of(kernel), word);
}

// What this process dies of, or stands still by, before it runs the kernel that is next.
void end_in_time() {
    static int kernels = 0;
    if (kernels++ != number("after_kernels", 0)) return;
    if (!is_rank("dead_rank") && !is_rank("stopped_rank")) return;
    const char *once = setting("once");
    if (once && open(once, O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0) return;
    if (is_rank("dead_rank")) raise(SIGKILL);
    raise(SIGSTOP);
}

// Spoils the first word of the output of one of our own kernels.
void spoil(const Op &op) {
    const char *pointers = op.bytes->data() + sizeof(CallParameters);
    const char *ranks = pointers + 2 * size_t(op.meets) * sizeof(void *);
    *static_cast<uint32_t *>(reinterpret_cast<const RankParameters *>(ranks)->out) ^= 0x4000;
}

// Begins a kernel that meets those of other processes, or goes on with it; whether that is its end.
bool run_among_processes(Op *op) {
    if (under_way == nullptr) end_in_time();
    EngineEnd end = under_way == nullptr ? run_together({op}, true) : engine_go_on().end;
    under_way = end == EngineEnd::waiting ? op : nullptr;
    if (under_way == nullptr && is_rank("wrong_rank") && is_named(op->kernel, "wrong_on")) spoil(*op);
    return under_way == nullptr;
}

void pop(Stream *stream) {
    stream->queue.pop_front();
    clock_ms += 0.001;
}

// Where a launch looks whether it is to give up.
const uint32_t *give_up_of(const Op &op) {
    const char *name = name_of(op.kernel);
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
    return is_named(op.kernel, "hang_on") || (op.meets > 1 && setting("hang"));
}

// Whether an operation waits until those of this process's other streams meet it.
bool meets_here(const Op &op) {
    return op.meets > 1 && !has_processes();
}

void run_late() {
    while (!late.empty() && under_way == nullptr) {
        run_together({&late.front()});
        late.pop_front();
    }
}

// Whether a GPU has room for launches that wait for each other, all at once, and for what may still be there
// of the launches ahead of them.
bool fit(const std::vector<Op *> &ops) {
    for (const Op *of : ops) {
        unsigned blocks = 0;
        for (const Op *op : ops) blocks += op->gpu == of->gpu ? op->blocks * op->ranks + op->ahead : 0;
        if (blocks <= OF_EACH * MULTIPROCESSORS) continue;
        std::fprintf(stderr, "stand-in: %u blocks wait for each other on a GPU that holds %d at once\n",
                     blocks, OF_EACH * MULTIPROCESSORS);
        return false;
    }
    return true;
}

// Runs whatever can run.
void pump() {
    for (bool moved = true; moved;) {
        moved = false;
        std::vector<Stream *> waiting;
        for (Stream *stream : streams) {
            while (!stream->queue.empty() && !meets_here(stream->queue.front())) {
                Op &op = stream->queue.front();
                if (hangs(op) || is_held(op)) break;
                if (op.kernel && under_way != nullptr && under_way != &op) break;
                if (op.awaits && op.awaits->reached < op.awaited) break;
                if (is_pausing()) return;
                if (op.flag && setting("give_up_breaks")) is_broken = true;
                if (op.awaits || op.flag) {
                    // it is there
                } else if (op.attempt || op.together) {
                    if (op.from_ns == 0) op.from_ns = now_ns();
                    if (op.together) op.together(&op.argument, 1);
                    if (op.attempt && !op.attempt(op.argument)) break;
                    if (ran && op.correlation) ran(op.correlation, op.from_ns, now_ns());
                } else if (op.kernel && op.meets > 1) {
                    if (!run_among_processes(&op)) break;
                } else if (op.kernel) {
                    op.from_ns = now_ns();
                    run_together({&op});
                    if (ran && op.correlation) ran(op.correlation, op.from_ns, now_ns());
                } else {
                    op.run();
                }
                pop(stream);
                moved = true;
            }
            if (stream->queue.empty()) continue;
            const Op &first = stream->queue.front();
            if (meets_here(first) && !hangs(first)) waiting.push_back(stream);
        }
        if (waiting.empty() || waiting.size() < size_t(waiting[0]->queue.front().meets)) continue;
        std::vector<Op *> ops;
        std::vector<void *> arguments;
        for (Stream *stream : waiting) ops.push_back(&stream->queue.front());
        for (Op *op : ops) arguments.push_back(op->argument);
        if (ops[0]->together) {
            ops[0]->together(arguments.data(), int(arguments.size()));
        } else if (fit(ops)) {
            run_together(ops);
        } else {
            is_broken = true;
        }
        for (Stream *stream : waiting) pop(stream);
        moved = true;
    }
    run_late();
}

CUresult enqueue_op(CUstream of, Op op) {
    std::lock_guard<std::mutex> guard(lock);
    Stream *stream = reinterpret_cast<Stream *>(of);
    if (current_gpu < 0 || stream->gpu != current_gpu) return CUDA_ERROR_INVALID_CONTEXT;
    op.gpu = stream->gpu;
    op.ahead = op.is_programmatic ? stream->last_blocks : 0;
    stream->last_blocks = op.kernel ? op.blocks * op.ranks : 0;
    if (stream->capture) {
        stream->capture->push_back(op);
    } else {
        stream->queue.push_back(op);
    }
    return CUDA_SUCCESS;
}

} // namespace

CUresult stand_in::enqueue(CUstream of, std::function<void()> run) {
    Op op;
    op.run = run;
    return enqueue_op(of, op);
}

bool stand_in::spoils_capture() {
    std::lock_guard<std::mutex> guard(lock);
    for (Stream *stream : streams) {
        if (stream->capture && pthread_equal(stream->capturing, pthread_self())) stream->is_invalid = true;
    }
    return captures > 0;
}

CUresult stand_in::drain(CUstream of) {
    const Stream *only = reinterpret_cast<Stream *>(of);
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

int stand_in::place_of(CUdevice device) {
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return device + (setting("own_gpu") && !setting("same_gpu") && rank ? std::atoi(rank) : 0);
}

// ---- GPUs --------------------------------------------------------------------------------------------

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
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = MULTIPROCESSORS; break;
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

// ---- kernels ----

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    if (setting("no_binary")) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (setting("reads_images") && std::memcmp(image, "\x50\xed\x55\xba", 4) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
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
    *blocks = setting("boasts") ? 2 * OF_EACH : OF_EACH;
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
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return CUDA_ERROR_INVALID_VALUE;
        op.is_programmatic = config->attrs[i].value.programmaticStreamSerializationAllowed != 0;
    }
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
    if (launched && op.meets <= 1) op.correlation = launched(false);
    return enqueue_op(config->hStream, op);
}

static void enqueue_work(CUstream stream, Op op, void *argument, bool by_runtime) {
    static auto *arguments = new std::vector<void *>; // to the end, for a graph may use one at any time
    op.argument = argument;
    {
        std::lock_guard<std::mutex> guard(lock);
        arguments->push_back(argument);
    }
    if (launched) op.correlation = launched(by_runtime);
    enqueue_op(stream, op);
}

// For the stand-ins of libraries: what `ranks` streams do together, launched by the runtime.
void stand_in_meet(CUstream stream, int ranks, void (*together)(void **, int), void *argument) {
    Op op;
    op.meets = ranks;
    op.together = together;
    enqueue_work(stream, op, argument, true);
}

// What is tried, when the stream has come to it, until it is done; launched by the driver.
void stand_in_try(CUstream stream, int (*attempt)(void *argument), void *argument) {
    Op op;
    op.attempt = attempt;
    enqueue_work(stream, op, argument, false);
}

// Whether a graph has such a call.
int stand_in_is_captured(int (*is)(void *argument, const void *of), const void *of) {
    std::lock_guard<std::mutex> guard(lock);
    for (const std::vector<Op> *graph : graphs) {
        for (const Op &op : *graph) {
            if ((op.together || op.attempt) && is(op.argument, of)) return 1;
        }
    }
    return 0;
}

// For the stand-in of CUPTI.
void stand_in_watch(unsigned (*on_launch)(bool by_runtime),
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
    return enqueue_op(stream, op);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr flag, cuuint32_t least, unsigned) {
    Op op;
    op.flag = reinterpret_cast<const uint32_t *>(flag);
    op.least = least;
    return enqueue_op(stream, op);
}
CUresult cuStreamSynchronize(CUstream of) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    return drain(of);
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
    stream->last_blocks = 0;
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
    stream->last_blocks = 0;
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
    const std::vector<Op> &ops = *reinterpret_cast<std::vector<Op> *>(exec);
    size_t count = ops.size() < size_t(number("lazy_graph", 0)) ? ops.size() - 1 : ops.size();
    int graph_ms = number("graph_ms", 0);
    if (graph_ms > 0) result = enqueue(of, [graph_ms] { clock_ms += graph_ms; });
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) result = enqueue_op(of, ops[i]);
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
    if (is_rank("broken_rank") && times_told >= number("broken_after", 0)) return CUDA_ERROR_LAUNCH_FAILED;
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
}
