// Busy time: how long at least one of many intervals lasts. Intervals come in order of their start, are
// merged where one begins before or when the last one ends, and are measured as differences of doubles.
#ifndef GENTABLES_TRACE_INTERVALS_H
#define GENTABLES_TRACE_INTERVALS_H

#include <algorithm>
#include <vector>

namespace trace {

struct span {
    double start, end;
};

// Adds up intervals without keeping them.
class busy {
  public:
    void add(double start, double end) {
        if (!open_) {
            last_ = {start, end};
            open_ = true;
        } else if (start <= last_.end) {
            last_.end = std::max(last_.end, end);
        } else {
            total_ += last_.end - last_.start;
            last_ = {start, end};
        }
    }
    double total() const { return open_ ? total_ + (last_.end - last_.start) : 0; }

  private:
    span last_{};
    double total_ = 0;
    bool open_ = false;
};

// Merges the interval into `to`, a list of merged intervals none of which starts later.
void merge_span(std::vector<span> &to, span one);

// Two lists of merged intervals as one.
std::vector<span> united(const std::vector<span> &a, const std::vector<span> &b);

// How long the intervals of `of` last where none of `without` does; both are merged.
double time_without(const std::vector<span> &of, const std::vector<span> &without);

// How long the merged intervals last.
double total_time(const std::vector<span> &spans);

} // namespace trace

#endif
