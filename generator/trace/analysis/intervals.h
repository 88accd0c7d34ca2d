// Busy time: the time in which at least one of many intervals lasts. Intervals come in order of their start.
// A union is a list of intervals that neither overlap nor touch. Times are differences of doubles.
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

// Adds an interval that starts no earlier than the last one of the union.
void add_to_union(std::vector<span> &to, span one);

// The union of two unions.
std::vector<span> united(const std::vector<span> &a, const std::vector<span> &b);

// The time in which the intervals of `of` last and none of `without` does; both are unions.
double time_without(const std::vector<span> &of, const std::vector<span> &without);

// The length of a union.
double total_time(const std::vector<span> &spans);

} // namespace trace

#endif
