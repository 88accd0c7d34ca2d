// Statistics over groups of instances, for the columns _mean, _median, _std, _min, _max and _sum, and the
// description of a group's kernels.
#ifndef GENTABLES_TRACE_GROUPS_H
#define GENTABLES_TRACE_GROUPS_H

#include <string>

#include "selection.h"

namespace trace {

// deviation divides by n - 1; it is NaN for one value, and 0 for values that differ by at most `rounding`.
// Without values all but count, sum and rounding are NaN.
struct statistics {
    double mean, median, deviation, min, max, sum;
    double rounding; // the difference that equal values may have
    uint32_t count;
};

// Of all values; changes their order.
statistics statistics_of(std::vector<double> &values, double rounding);

// The instances of each group, in order of the selection.
struct grouping {
    std::vector<uint32_t> first; // the first index of each group; and the end
    std::vector<uint32_t> instances;

    uint32_t size() const { return uint32_t(first.size() - 1); }
};

// `group_of` has the group of each combo, or NONE if its instances are left out.
grouping grouped(const selection &of, const std::vector<uint32_t> &group_of, uint32_t groups);

// computing: time without the kernels that only move data.
enum class measured { time, subtree, duration, computing };

// One value per group. If `work` (of each combo) is not empty, the value is work / time; instances without
// time or without work (NaN) have no value.
std::vector<statistics> measure_groups(const selection &of, const grouping &groups, measured what,
                                       const std::vector<double> &work);

// A kernel of an op, over all instances of a group with as many kernels as the group's first.
struct kernel_detail {
    uint32_t name; // text
    int32_t stream;
    statistics durations; // deviation divides by n
};
std::vector<kernel_detail> kernel_details(const selection &of, const grouping &groups, uint32_t group);

// Writes the cells that describe these kernels, as Python literals: all facts, and only name, stream and
// mean.
void append_details(const trace &names, const std::vector<kernel_detail> &kernels, std::string &whole,
                    std::string &brief);

// GPU events by their kernel and their launch.
struct kernel_row {
    uint32_t parent;       // text: name of the op, or of the launch; EMPTY_TEXT: not linked
    uint32_t first_kernel; // text: of that op (analysis.h); EMPTY_TEXT: it has none, or the parent is no op
    bool is_of_op;         // the parent is an op
    uint32_t arguments;    // of the parent; NONE in rows of kernel_rows
    uint32_t kernel;       // text
    int32_t stream;        // 0 in rows of short_kernel_rows
    uint32_t example;      // event: the first of them
    uint64_t count;
    double sum, min, max;
};

// All kernels, by parent, kernel and stream.
std::vector<kernel_row> kernel_rows(const analysis &of);

// The linked kernels shorter than `limit`, by parent, its arguments and kernel.
std::vector<kernel_row> short_kernel_rows(const analysis &of, double limit);

// The durations of those, in bins of equal width from the shortest to the longest.
struct histogram {
    double begin, end;
    std::vector<uint64_t> counts;
};
histogram short_kernel_histogram(const analysis &of, double limit, uint32_t bins);

} // namespace trace

#endif
