// Fuzzes the reader of traces: any file is read, or rejected in one line, and the result does not depend on
// the size of chunks or the number of workers. libFuzzer calls LLVMFuzzerTestOneInput; replay.cpp does so for
// kept files.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_trace_reader
//   build-fuzz/bin/fuzz_trace_reader -dict=tests/fuzz/trace.dict -max_total_time=60 NEW
//   tests/fuzz/corpus/trace
#include <algorithm>
#include <cstring>

#include "file_in_memory.h"
#include "trace/reader/trace.h"

namespace {

void add(std::string &to, const void *data, size_t size) {
    to.append(static_cast<const char *>(data), size);
}

bool holds(trace::numbers_of_events list, uint32_t number) {
    return std::find(list.begin(), list.end(), number) != list.end();
}

// An event with a parent lies below it, and below all parents of that one.
void check_tree(const trace::trace &read) {
    for (uint32_t i = 0; i < read.events.size(); i++) {
        bool is_gpu = trace::is_gpu(read.events[i].kind);
        uint32_t above = read.events[i].parent;
        if (is_gpu && above != trace::NONE && !holds(trace::gpu_of(read, above), i)) die("lost");
        for (; above != trace::NONE; above = read.events[above].parent) {
            auto below = is_gpu ? trace::gpu_below(read, above) : trace::host_below(read, above);
            if (!holds(below, i)) die("not below what is above it");
        }
    }
}

// The whole content of a trace as text, for comparison.
std::string describe(const trace::trace &read) {
    std::string out;
    for (uint32_t i = 0; i < read.events.size(); i++) {
        const trace::event &event = read.events[i];
        out += read.names[event.name];
        add(out, &event.start, sizeof event.start);
        add(out, &event.duration, sizeof event.duration);
        add(out, &event.uid, sizeof event.uid);
        add(out, &event.parent, sizeof event.parent);
        out += read.names[read.tracks[event.track].thread_name];
        for (uint32_t below : trace::gpu_below(read, i)) add(out, &below, sizeof below);
        for (uint32_t below : trace::host_below(read, i)) add(out, &below, sizeof below);
        if (event.arguments == trace::NONE || event.kind != trace::kind::cpu_op) continue;
        out += read.names[read.argument_sets[event.arguments].dims];
    }
    add(out, read.flaws.data(), sizeof read.flaws);
    add(out, read.first_flaw.data(), sizeof read.first_flaw);
    add(out, &read.events_in_file, sizeof read.events_in_file);
    return out;
}

std::string outcome(const char *path, const trace::read_options &options) {
    trace::trace read;
    problem problem{};
    if (!trace::read(path, options, read, problem)) {
        if (strchr(problem.text, '\n') != nullptr) die("more than a line", problem.text, "");
        return problem.text;
    }
    trace::link(read);
    check_tree(read);
    return describe(read);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    file_in_memory file(data, size);
    std::string whole = outcome(file.path().c_str(), {1, size_t(1) << 20});
    std::string parts = outcome(file.path().c_str(), {1, 64});
    if (whole != parts) die("another outcome in small chunks", whole, parts);
    std::string together = outcome(file.path().c_str(), {3, 200});
    if (whole != together) die("another outcome with several workers", whole, together);
    return 0;
}
