// Runs the streams of the stand-in for libcuda.so.1, and launches kernels: see driver.cpp for the rules, and
// queues.h for the interface.
#include "queues.h"

#include "cuda/kernels/arguments.h"
#include "cuda/kernels/parameters.h"
#include "engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <string>
#include <unistd.h>

extern "C" bool engine_joint;
bool engine_joint;

namespace stand_in {

std::vector<Stream *> streams;
std::set<const std::vector<Op> *> graphs;
bool is_broken = false;

unsigned long long now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

} // namespace stand_in

using namespace stand_in;

namespace {

struct Module {
    bool is_there;
};
std::condition_variable has_run;                 // notified after each operation
std::deque<Op> late;                             // launches of late_on
const Op *under_way = nullptr;                   // a kernel that waits for those of other processes
unsigned (*launched)(bool by_runtime) = nullptr; // of the stand-in of CUPTI: at launches, and at their ends
void (*ran)(unsigned correlation, unsigned long long from_ns, unsigned long long to_ns) = nullptr;

// ---- running ----------------------------------------------------------------------------------------------

// Whether ranks are processes: of Open MPI, or, without it, those with which this one shares memory.
bool has_processes() {
    static const char *const size = std::getenv("OMPI_COMM_WORLD_SIZE");
    return has_imported || (size && std::atoi(size) > 1);
}

// Runs launches that meet each other, or one alone. `has_others`: that one meets launches of other processes;
// the result is EngineEnd::waiting while it waits for them.
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
    run.must_wait = ops[0]->is_programmatic;
    run.shape = [=](int rank, int) {
        const Op *op = joint ? ops[0] : ops[size_t(rank)];
        return EngineLaunch{op->blocks, op->threads, op->cluster};
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

// The name of a kernel; "" if it has none. Looked up once, because polls need it.
template <class Kernel> const char *name_of(Kernel kernel) {
    thread_local std::map<void *, const char *> names;
    void *address = reinterpret_cast<void *>(kernel);
    auto [at, is_new] = names.try_emplace(address, "");
    Dl_info what;
    if (is_new && address && dladdr(address, &what) && what.dli_sname) at->second = what.dli_sname;
    return at->second;
}

// Whether the name of a kernel contains the value of a setting.
template <class Kernel> bool is_named(Kernel kernel, const char *name) {
    const char *word = setting(name);
    return word && kernel && std::strstr(name_of(kernel), word);
}

// Kills or stops this process before its next kernel, if the settings demand that.
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

// Begins a kernel that meets those of other processes, or continues it. Returns whether it has ended.
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
    has_run.notify_all();
}

// The flag that makes a launch give up.
const uint32_t *give_up_of(const Op &op) {
    const char *name = name_of(op.kernel);
    if (std::strstr(name, "_exchange_") || std::strstr(name, "_reduce_scatter_"))
        return reinterpret_cast<const ExchangeCall *>(op.bytes->data())->give_up;
    return reinterpret_cast<const CallParameters *>(op.bytes->data())->give_up;
}

// Whether the GPU has to wait before its next operation, by the settings paced and paced_ms.
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

// Whether an operation waits for its flag.
bool is_held(const Op &op) {
    return op.flag && int32_t(__atomic_load_n(op.flag, __ATOMIC_ACQUIRE) - op.least) < 0;
}

// Evaluated once for each operation, because there are many polls.
bool hangs(const Op &op) {
    return is_named(op.kernel, "hang_on") || (op.meets > 1 && setting("hang"));
}

// Whether an operation waits for those of other streams of this process.
bool meets_here(const Op &op) {
    return op.meets > 1 && !has_processes();
}

void run_late() {
    while (!late.empty() && under_way == nullptr) {
        run_together({&late.front()});
        late.pop_front();
    }
}

// Whether each GPU has room for all blocks of launches that wait for each other; if several streams share a
// GPU, also for the blocks of the launches ahead of them, which may still wait for those of another stream.
bool fit(const std::vector<Op *> &ops) {
    for (const Op *of : ops) {
        unsigned blocks = 0, ahead = 0, sharers = 0;
        for (const Op *op : ops) {
            if (op->gpu != of->gpu) continue;
            blocks += op->blocks * op->ranks;
            ahead += op->ahead;
            sharers++;
        }
        if (sharers > 1) blocks += ahead;
        if (blocks <= OF_EACH * MULTIPROCESSORS) continue;
        std::fprintf(stderr, "stand-in: %u blocks wait for each other on a GPU that holds %d at once\n",
                     blocks, OF_EACH * MULTIPROCESSORS);
        return false;
    }
    return true;
}

} // namespace

void stand_in::pump() {
    for (bool moved = true; moved;) {
        moved = false;
        std::vector<Stream *> waiting;
        for (Stream *stream : streams) {
            while (!stream->queue.empty() && !meets_here(stream->queue.front())) {
                Op &op = stream->queue.front();
                if (op.hangs || is_held(op)) break;
                if (op.kernel && under_way != nullptr && under_way != &op) break;
                if (op.awaits && op.awaits->reached < op.awaited) break;
                if (is_pausing()) return;
                if (op.flag && setting("give_up_breaks")) is_broken = true;
                if (op.awaits) {
                    stream->lag_ms = std::max(stream->lag_ms, op.awaits->lag_ms);
                } else if (op.flag) {
                    // the wait is over
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
            if (meets_here(first) && !first.hangs) waiting.push_back(stream);
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
        double lag_ms = 0;
        for (Stream *stream : waiting) lag_ms = std::max(lag_ms, stream->lag_ms);
        for (Stream *stream : waiting) stream->lag_ms = lag_ms;
        for (Stream *stream : waiting) pop(stream);
        moved = true;
    }
    run_late();
}

CUresult stand_in::enqueue_op(CUstream of, Op op) {
    std::lock_guard<std::mutex> guard(lock);
    Stream *stream = reinterpret_cast<Stream *>(of);
    if (current_gpu < 0 || stream->gpu != current_gpu) return CUDA_ERROR_INVALID_CONTEXT;
    op.gpu = stream->gpu;
    op.ahead = op.is_programmatic ? stream->last_blocks : 0;
    op.hangs = hangs(op);
    stream->last_blocks = op.kernel ? op.blocks * op.ranks : 0;
    if (stream->capture) {
        stream->capture->push_back(op);
    } else {
        stream->queue.push_back(op);
    }
    return CUDA_SUCCESS;
}

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

void stand_in::wait_a_moment(std::unique_lock<std::mutex> &guard) {
    has_run.wait_for(guard, std::chrono::microseconds(200));
}

CUresult stand_in::drain(CUstream of) {
    const Stream *only = reinterpret_cast<Stream *>(of);
    std::unique_lock<std::mutex> guard(lock);
    for (;; wait_a_moment(guard)) {
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

extern "C" {

// ---- kernels ----

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    REFUSE_WITHOUT_CONTEXT;
    REFUSE_IN_CAPTURE;
    if (setting("no_binary")) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (setting("old_ptx")) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
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
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function) {
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    int binary = number("binary", number_of("sm", 0, 90));
    if (which == CU_FUNC_ATTRIBUTE_PTX_VERSION) {
        *value = number("ptx", binary); // nvcc compiles the code of sm_N from the PTX of compute_N
    } else if (which == CU_FUNC_ATTRIBUTE_BINARY_VERSION) {
        *value = binary;
    } else if (which == CU_FUNC_ATTRIBUTE_NUM_REGS) {
        *value = 40;
    } else if (which == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) {
        *value = number("local_bytes", 0);
    } else if (which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) {
        *value = number("most_threads", 1024);
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction, int, size_t) {
    REFUSE_WITHOUT_CONTEXT;
    *blocks = setting("boasts") ? 2 * OF_EACH : OF_EACH;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction, const CUlaunchConfig *config) {
    REFUSE_WITHOUT_CONTEXT;
    *clusters = 0;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        int fitting = OF_EACH * MULTIPROCESSORS / int(config->attrs[i].value.clusterDim.x);
        *clusters = number_of("clusters", current_gpu, fitting);
    }
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **, void **extra) {
    Op op;
    if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimY > 65535 || config->gridDimZ != 1 ||
        config->blockDimX == 0 || config->blockDimX > 1024 || config->blockDimY != 1 ||
        config->blockDimZ != 1 || function == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    static const char none[64] = {}; // parameters of a kernel that has none
    const char *bytes = extra ? static_cast<const char *>(extra[1]) : none;
    size_t count = extra ? *static_cast<size_t *>(extra[3]) : sizeof none;
    op.kernel = reinterpret_cast<void (*)(const void *)>(function);
    op.bytes = std::make_shared<std::vector<char>>(bytes, bytes + count);
    op.blocks = config->gridDimX;
    op.ranks = config->gridDimY;
    op.threads = config->blockDimX;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute &attribute = config->attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            op.is_programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
        else if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            op.cluster = attribute.value.clusterDim.x;
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (op.is_programmatic && setting("no_programmatic")) return CUDA_ERROR_NOT_SUPPORTED;
    if (op.cluster == 0 || op.blocks % op.cluster != 0 || op.cluster > 8 ||
        (op.cluster > 1 && setting("no_clusters")))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    bool fills = setting("gemms_wait") && op.ranks > 1 && op.blocks * op.ranks >= MULTIPROCESSORS;
    if (fills || op.blocks == unsigned(number("held_blocks", 0))) {
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
    if (op.ranks == 1) {
        const char *kernel = name_of(function), *tp = std::strstr(kernel, "_tp");
        if (tp) op.meets = std::atoi(tp + 3);
        if (std::strstr(kernel, "_barrier")) {
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
    static auto *arguments = new std::vector<void *>; // kept to the end: a graph may use one at any time
    op.argument = argument;
    {
        std::lock_guard<std::mutex> guard(lock);
        arguments->push_back(argument);
    }
    if (launched) op.correlation = launched(by_runtime);
    enqueue_op(stream, op);
}

// For the stand-ins of libraries: calls `together` once, when the streams of all ranks have come to it. To
// CUPTI it is a launch by the runtime.
void stand_in_meet(CUstream stream, int ranks, void (*together)(void **, int), void *argument) {
    Op op;
    op.meets = ranks;
    op.together = together;
    enqueue_work(stream, op, argument, true);
}

// The same: when the stream has come to it, calls `attempt` until it returns true. To CUPTI it is a launch by
// the driver.
void stand_in_try(CUstream stream, int (*attempt)(void *argument), void *argument) {
    Op op;
    op.attempt = attempt;
    enqueue_work(stream, op, argument, false);
}

// Whether a graph contains one of these calls for which is(argument, of) holds.
int stand_in_is_captured(int (*is)(void *argument, const void *of), const void *of) {
    std::lock_guard<std::mutex> guard(lock);
    for (const std::vector<Op> *graph : graphs) {
        for (const Op &op : *graph) {
            if ((op.together || op.attempt) && is(op.argument, of)) return 1;
        }
    }
    return 0;
}

// For the stand-in of CUPTI: on_launch is called at each launch and returns its number, on_end with that
// number when the launch has ended.
void stand_in_watch(unsigned (*on_launch)(bool by_runtime),
                    void (*on_end)(unsigned, unsigned long long, unsigned long long)) {
    launched = on_launch;
    ran = on_end;
}

// For the stand-ins of libraries: advances the clock by the time of a call; breaks the GPU; returns the n-th
// number of a setting, 1 for a setting without a value, `otherwise` beyond the last number.
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
}
