// Statistics over groups of instances: what the columns _mean, _median, _std, _min, _max and _sum hold, and
// the description of a group's kernels.
#ifndef GENTABLES_TRACE_GROUPS_H
#define GENTABLES_TRACE_GROUPS_H

#include <string>

#include "selection.h"

namespace trace {

// deviation has n - 1 below; NaN where there is one value. All but count and sum are NaN where there is none.
struct statistics {
    double mean, median, deviation, min, max, sum;
    uint32_t count;
};

// Of all values, which it puts in another order.
statistics statistics_of(std::vector<double> &values);

// Which instances make up each group, in order of the selection.
struct grouping {
    std::vector<uint32_t> first; // where those of each group begin; and the end
    std::vector<uint32_t> instances;

    uint32_t size() const { return uint32_t(first.size() - 1); }
};

// `group_of` says the group of each combo, or NONE where its instances are left out.
grouping grouped(const selection &of, const std::vector<uint32_t> &group_of, uint32_t groups);

// computing: time without the kernels that only move data.
enum class measured { time, subtree, duration, computing };

// One value per group. `work` (of each combo; or empty) divides: the value is then work / time, and instances
// without time or without work (NaN) have none.
std::vector<statistics> measure_groups(const selection &of, const grouping &groups, measured what,
                                       const std::vector<double> &work);

// What one of the kernels of an op did, over all instances of a group that have as many kernels as its first.
struct kernel_detail {
    uint32_t name; // text
    int32_t stream;
    statistics durations; // deviation has n below
};
std::vector<kernel_detail> kernel_details(const selection &of, const grouping &groups, uint32_t group);

// Writes the cells that describe these kernels, as Python literals: all facts, and name, stream and mean
// alone.
void append_details(const trace &names, const std::vector<kernel_detail> &kernels, std::string &whole,
                    std::string &brief);

// GPU events by their kernel and what launched it.
struct kernel_row {
    uint32_t parent; // text: name of the op, or of the launch; EMPTY_TEXT: not linked
    uint32_t
        first_kernel;   // text: of that op's kernels the first; EMPTY_TEXT: the parent is a launch, or none
    uint32_t arguments; // of the parent; NONE in rows of kernel_rows
    uint32_t kernel;    // text
    int32_t stream;     // 0 in rows of short_kernel_rows
    uint32_t example;   // event: the first of them
    uint64_t count;
    double sum, min, max;
};

// All kernels, by parent, kernel and stream.
std::vector<kernel_row> kernel_rows(const analysis &of);

// The linked kernels shorter than `limit`, by parent, its arguments and kernel.
std::vector<kernel_row> short_kernel_rows(const analysis &of, double limit);

// The durations of those, in bins of one width from the shortest to the longest.
struct histogram {
    double begin, end;
    std::vector<uint64_t> counts;
};
histogram short_kernel_histogram(const analysis &of, double limit, uint32_t bins);

} // namespace trace

#endif
