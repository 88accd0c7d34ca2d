// Statistics over instances of ops: see groups.h.
#include "groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/percentiles.h"
#include "intervals.h"

namespace trace {

namespace {

constexpr double NO_VALUE = std::numeric_limits<double>::quiet_NaN();

double squares(const std::vector<double> &values, double mean) {
    double sum = 0;
    for (double value : values) sum += (value - mean) * (value - mean);
    return sum;
}

} // namespace

statistics statistics_of(std::vector<double> &values, double rounding) {
    statistics result = {NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE,
                         NO_VALUE, 0,        rounding, uint32_t(values.size())};
    if (values.empty()) return result;
    result.min = result.max = values[0];
    for (double value : values) {
        result.sum += value;
        result.min = std::min(result.min, value);
        result.max = std::max(result.max, value);
    }
    auto count = double(values.size());
    bool are_equal = result.max - result.min <= rounding;
    result.mean = result.sum / count;
    if (values.size() > 1)
        result.deviation = are_equal ? 0 : std::sqrt(squares(values, result.mean) / (count - 1));
    result.median = median_of(values);
    return result;
}

grouping grouped(const selection &of, const std::vector<uint32_t> &group_of, uint32_t groups) {
    grouping result;
    sort_into(groups, result.first, result.instances, [&](auto take) {
        for (uint32_t i = 0; i < of.instances.size(); i++) {
            uint32_t group = group_of[of.instances[i].combo];
            if (group != NONE) take(group, i);
        }
    });
    return result;
}

namespace {

// The busy time of an instance's own GPU events, which are in order of time, without those that only move
// data.
double computing_time(const selection &of, uint32_t instance) {
    busy all;
    for (uint32_t i = of.first[instance]; i < of.first[instance + 1]; i++) {
        const gpu_event &one = of.gpu_at(i);
        if (!of.of->has(of.of->at(one), MOVES_DATA)) all.add(one.start, one.end);
    }
    return all.total();
}

double value_of(const selection &of, uint32_t number, measured what) {
    const instance &one = of.instances[number];
    switch (what) {
    case measured::computing: return computing_time(of, number);
    case measured::time: return one.time;
    case measured::subtree: return one.subtree;
    case measured::duration: return of.op(one).duration;
    }
    return NO_VALUE;
}

// The difference that busy times of one length may have: each is a sum of differences of time stamps, and
// doubles hold time stamps rounded.
double rounding_of(const selection &of, const grouping &groups, uint32_t group) {
    uint32_t most = 0; // GPU events of an instance
    for (uint32_t i = groups.first[group]; i < groups.first[group + 1]; i++) {
        uint32_t one = groups.instances[i];
        most = std::max(most, of.first[one + 1] - of.first[one]);
    }
    if (most == 0) return 0;
    double stamp = std::fabs(of.of->gpu.back().end);
    double step = std::nextafter(stamp, std::numeric_limits<double>::infinity()) - stamp;
    return 2 * step * std::sqrt(double(most)); // errors of many stamps partly cancel out
}

} // namespace

std::vector<statistics> measure_groups(const selection &of, const grouping &groups, measured what,
                                       const std::vector<double> &work) {
    std::vector<statistics> result;
    std::vector<double> values;
    for (uint32_t group = 0; group < groups.size(); group++) {
        values.clear();
        double rounding = what == measured::duration ? 0 : rounding_of(of, groups, group);
        double relative = 0; // the same as a share of the shortest time
        for (uint32_t i = groups.first[group]; i < groups.first[group + 1]; i++) {
            const instance &one = of.instances[groups.instances[i]];
            double value = value_of(of, groups.instances[i], what);
            if (!work.empty()) {
                if (value > 0) relative = std::max(relative, rounding / value);
                value = value > 0 ? work[one.combo] / value : NO_VALUE;
            }
            if (!std::isnan(value)) values.push_back(value);
        }
        if (!work.empty() && !values.empty())
            rounding = relative * *std::max_element(values.begin(), values.end());
        result.push_back(statistics_of(values, rounding));
    }
    return result;
}

} // namespace trace
