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
// order: those of the same kind and kernel. If a captured graph has no names of kernels, as on GPUs of
// NVIDIA, it matches only with as many calls, and without parallel branches. Of several graphs, or places in
// one, that with most matches counts. If several have as many, a GPU event has an op only if it is the same
// in all of them, and the arguments and stacks that are the same. Sets to.is_attributed, to.graph_events and
// the flaws of graphs.
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
