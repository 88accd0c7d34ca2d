// The driver's calls on streams, events and graphs, of the stand-in for libcuda.so.1; see driver.cpp.
#include "queues.h"

using namespace stand_in;

static int times_told = 0;

extern "C" {

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
    return enqueue(stream, [event, number, stream] {
        static const unsigned long long since_ns = now_ns();
        event->reached = number;
        event->lag_ms = reinterpret_cast<Stream *>(stream)->lag_ms;
        event->at_ms = setting("real_clock") ? double(now_ns() - since_ns) / 1e6 : clock_ms + event->lag_ms;
    });
}
CUresult cuEventQuery(CUevent of) {
    REFUSE_IN_CAPTURE;
    static thread_local CUevent polled = nullptr; // the last one that this thread polled, if it was not ready
    std::unique_lock<std::mutex> guard(lock);
    if (of == polled) wait_a_moment(guard);
    pump();
    if (is_broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Event *event = reinterpret_cast<Event *>(of);
    polled = event->reached == event->recorded ? nullptr : of;
    return polled == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
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

#ifdef cuEventElapsedTime // as cuEventElapsedTime_v2, from CUDA 12.8 on; drivers have the first version, too
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
    return cuEventElapsedTime_v2(ms, from, to);
}
#endif
}
