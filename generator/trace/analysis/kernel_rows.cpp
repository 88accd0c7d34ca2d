// Kernels by their launches, and the short ones among them: see groups.h.
#include <algorithm>
#include <map>
#include <tuple>

#include "groups.h"

namespace trace {

namespace {

struct row_key {
    uint32_t parent, first_kernel, arguments, kernel;
    int32_t stream;
    bool is_of_op;
    auto all() const { return std::tie(parent, first_kernel, arguments, kernel, stream, is_of_op); }
    bool operator<(const row_key &other) const { return all() < other.all(); }
};

// Adds up GPU events by key.
class row_list {
  public:
    void add(const row_key &key, const gpu_event &one) {
        auto [at, is_new] = indices_.emplace(key, rows_.size());
        if (is_new)
            rows_.push_back({key.parent, key.first_kernel, key.is_of_op, key.arguments, key.kernel,
                             key.stream, one.event, 0, 0, one.duration, one.duration});
        kernel_row &row = rows_[at->second];
        row.example = std::min(row.example, one.event);
        row.count++;
        row.sum += one.duration;
        row.min = std::min(row.min, one.duration);
        row.max = std::max(row.max, one.duration);
    }
    std::vector<kernel_row> take() { return std::move(rows_); }

  private:
    std::vector<kernel_row> rows_;
    std::map<row_key, size_t> indices_;
};

// The nearest op, else the launch.
uint32_t parent_of(const analysis &of, const gpu_event &one) {
    uint32_t launch = of.at(one).parent, op = nearest_op(*of.of, launch);
    return op != NONE ? op : launch;
}

bool is_kernel(const analysis &of, const gpu_event &one) {
    return of.at(one).kind == kind::kernel;
}

} // namespace

std::vector<kernel_row> kernel_rows(const analysis &of) {
    row_list rows;
    for (const gpu_event &one : of.gpu) {
        if (!is_kernel(of, one)) continue;
        uint32_t parent = parent_of(of, one);
        row_key key = {EMPTY_TEXT, EMPTY_TEXT, NONE, of.at(one).name, of.at(one).stream, false};
        if (parent != NONE) {
            key.parent = of.of->events[parent].name;
            key.is_of_op = of.of->events[parent].kind == kind::cpu_op;
            if (key.is_of_op) key.first_kernel = of.first_kernels[parent];
        }
        rows.add(key, one);
    }
    return rows.take();
}

std::vector<kernel_row> short_kernel_rows(const analysis &of, double limit) {
    row_list rows;
    for (const gpu_event &one : of.gpu) {
        if (!is_kernel(of, one) || !of.is_linked(one) || !(one.duration < limit)) continue;
        const event &parent = of.of->events[parent_of(of, one)];
        rows.add({parent.name, EMPTY_TEXT, parent.arguments, of.at(one).name, 0, false}, one);
    }
    return rows.take();
}

histogram short_kernel_histogram(const analysis &of, double limit, uint32_t bins) {
    std::vector<double> durations;
    for (const gpu_event &one : of.gpu) {
        if (is_kernel(of, one) && one.duration < limit) durations.push_back(one.duration);
    }
    histogram result = {0, 0, {}};
    if (durations.empty()) return result;
    auto [least, most] = std::minmax_element(durations.begin(), durations.end());
    result.begin = *least;
    result.end = *most;
    if (*least == *most) {
        result.begin -= 0.5;
        result.end += 0.5;
    }
    result.counts.assign(bins, 0);
    double width = (result.end - result.begin) / bins;
    auto edge = [&](uint32_t bin) { return bin == bins ? result.end : result.begin + width * bin; };
    for (double duration : durations) {
        auto bin = uint32_t((duration - result.begin) / width);
        bin = std::min(bin, bins - 1);
        while (bin > 0 && duration < edge(bin)) bin--; // if the division rounded up
        while (bin + 1 < bins && duration >= edge(bin + 1)) bin++;
        result.counts[bin]++;
    }
    return result;
}

} // namespace trace
