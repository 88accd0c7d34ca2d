// Unions of intervals: see intervals.h.
#include "intervals.h"

namespace trace {

void add_to_union(std::vector<span> &to, span one) {
    if (!to.empty() && one.start <= to.back().end) {
        to.back().end = std::max(to.back().end, one.end);
    } else {
        to.push_back(one);
    }
}

std::vector<span> united(const std::vector<span> &a, const std::vector<span> &b) {
    std::vector<span> all;
    all.reserve(a.size() + b.size());
    size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        bool is_first = j == b.size() || (i < a.size() && a[i].start <= b[j].start);
        add_to_union(all, is_first ? a[i++] : b[j++]);
    }
    return all;
}

double time_without(const std::vector<span> &of, const std::vector<span> &without) {
    double total = 0;
    size_t next = 0;
    for (span rest : of) {
        while (next < without.size() && without[next].end <= rest.start) next++;
        for (size_t i = next; i < without.size() && without[i].start < rest.end; i++) {
            if (without[i].start > rest.start) total += without[i].start - rest.start;
            rest.start = std::min(rest.end, std::max(rest.start, without[i].end));
        }
        total += rest.end - rest.start;
    }
    return total;
}

double total_time(const std::vector<span> &spans) {
    double total = 0;
    for (const span &one : spans) total += one.end - one.start;
    return total;
}

} // namespace trace
