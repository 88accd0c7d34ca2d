// The ops of captured graphs for their replays: a trace that was recorded while graphs were captured has the
// ops and calls of the kernels that one launch replays later.
#ifndef GENTABLES_TRACE_CAPTURES_H
#define GENTABLES_TRACE_CAPTURES_H

#include <vector>

#include "trace/reader/trace.h"

namespace trace {

// Gives the GPU events of graph launches in `to` the ops and calls of the captured traces: copies of these,
// without a duration, below the launch. All traces are linked; `to` is not analysed yet.
//
// A captured graph is the calls between StreamBeginCapture and StreamEndCapture of a thread, or, in a trace
// without these, all calls with GPU events. The GPU events of a launch, in order, match calls of one graph in
// order: those of the same kind and kernel. If a captured trace has no names of kernels, as on GPUs of
// NVIDIA, only a graph with as many calls matches. Of several graphs, the one with most matches counts. Sets
// to.graph_events and to.graph_events_matched.
void attribute_graphs(trace &to, const std::vector<const trace *> &captured);

// The functions of Python of a thread, for times that do not fall.
class thread_frames {
  public:
    void add(const event &frame) { frames_.push_back(&frame); }
    void sort();
    // The names of those that run at this time, outermost first.
    std::vector<uint32_t> at(double time);

  private:
    void leave(double time);

    std::vector<const event *> frames_, stack_;
    size_t next_ = 0;
};

// Those of each track.
std::vector<thread_frames> frames_of(const trace &of);

} // namespace trace

#endif
