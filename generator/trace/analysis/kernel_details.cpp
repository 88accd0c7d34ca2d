// The kernels of an op, by their index within it: see kernel_detail in groups.h.
#include <algorithm>
#include <cmath>

#include "groups.h"
#include "literal.h"

namespace trace {

namespace {

// The kernel at an index within its op, over all instances.
kernel_detail detail_at(const selection &of, const std::vector<uint32_t> &instances, uint32_t index,
                        std::vector<double> &durations) {
    durations.clear();
    for (uint32_t one : instances) durations.push_back(of.gpu_at(of.first[one] + index).duration);
    const event &first = of.of->at(of.gpu_at(of.first[instances[0]] + index));
    kernel_detail result = {first.name, first.stream, statistics_of(durations, 0)};
    auto count = double(durations.size());
    double &deviation = result.durations.deviation;
    deviation = count > 1 ? deviation * std::sqrt((count - 1) / count) : 0;
    return result;
}

} // namespace

std::vector<kernel_detail> kernel_details(const selection &of, const grouping &groups, uint32_t group) {
    std::vector<uint32_t> comparable;
    auto count = [&of](uint32_t one) { return of.first[one + 1] - of.first[one]; };
    uint32_t kernels = 0;
    for (uint32_t i = groups.first[group]; i < groups.first[group + 1]; i++) {
        uint32_t one = groups.instances[i];
        if (comparable.empty()) kernels = count(one);
        if (count(one) == kernels) comparable.push_back(one);
    }
    std::vector<kernel_detail> result;
    std::vector<double> durations;
    for (uint32_t index = 0; index < kernels; index++)
        result.push_back(detail_at(of, comparable, index, durations));
    const texts &names = of.of->of->names;
    std::stable_sort(result.begin(), result.end(), [&names](const kernel_detail &a, const kernel_detail &b) {
        if (a.durations.sum != b.durations.sum) return a.durations.sum < b.durations.sum;
        return names[a.name] < names[b.name];
    });
    return result;
}

// ---- As text ----------------------------------------------------------------------------------

namespace {

constexpr size_t LONGEST = 64; // characters of a name in the brief text

// The first characters of UTF-8, and dots for the rest.
std::string shortened(std::string_view name) {
    size_t characters = 0, at = 0;
    for (; at < name.size(); at++) {
        bool begins = (static_cast<unsigned char>(name[at]) & 0xC0) != 0x80;
        if (begins && ++characters > LONGEST) break;
    }
    std::string result(name.substr(0, at));
    return at < name.size() ? result + "..." : result;
}

void append_number(const char *key, double number, std::string &to) {
    to += key;
    append_python_number(number, to);
}

void append_name(std::string_view name, int32_t stream, std::string &to) {
    to += "{'name': ";
    append_python_text(name, to);
    to += ", 'stream': ";
    to += std::to_string(stream);
}

void append_whole(std::string_view name, const kernel_detail &one, std::string &to) {
    const statistics &durations = one.durations;
    append_name(name, one.stream, to);
    to += ", 'count': ";
    to += std::to_string(durations.count);
    append_number(", 'total_duration_us': ", durations.sum, to);
    append_number(", 'mean_duration_us': ", durations.mean, to);
    append_number(", 'median_duration_us': ", durations.median, to);
    append_number(", 'std_dev_duration_us': ", durations.deviation, to);
    append_number(", 'min_duration_us': ", durations.min, to);
    append_number(", 'max_duration_us': ", durations.max, to);
    to += '}';
}

} // namespace

void append_details(const trace &names, const std::vector<kernel_detail> &kernels, std::string &whole,
                    std::string &brief) {
    whole = brief = "[";
    for (const kernel_detail &one : kernels) {
        if (whole.size() > 1) {
            whole += ", ";
            brief += ", ";
        }
        std::string_view name = names.names[one.name];
        append_whole(name, one, whole);
        append_name(shortened(name), one.stream, brief);
        append_number(", 'mean_duration_us': ", std::nearbyint(one.durations.mean * 100) / 100, brief);
        brief += '}';
    }
    whole += ']';
    brief += ']';
}

} // namespace trace
