// Fuzzes the reader of traces: any file is read, or rejected in one line, and the result does not depend on
// the size of chunks or the number of workers. libFuzzer calls LLVMFuzzerTestOneInput; replay.cpp does so for
// kept files.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_trace_reader
//   build-fuzz/bin/fuzz_trace_reader -dict=tests/fuzz/trace.dict -max_total_time=60 NEW
//   tests/fuzz/corpus/trace
#include <cstring>

#include "file_in_memory.h"
#include "trace/reader/trace.h"

namespace {

void add(std::string &to, const void *data, size_t size) {
    to.append(static_cast<const char *>(data), size);
}

// The parents above an event are host events, and end.
void check_parents(const trace::trace &read) {
    for (const trace::event &event : read.events) {
        size_t count = 0;
        for (uint32_t above = event.parent; above != trace::NONE; above = read.events[above].parent) {
            if (trace::is_gpu(read.events[above].kind)) die("below a GPU event");
            if (++count > read.events.size()) die("parents in a circle");
        }
    }
}

// The whole content of a trace as text, for comparison.
std::string describe(const trace::trace &read) {
    std::string out;
    for (const trace::event &event : read.events) {
        out += read.names[event.name];
        add(out, &event.start, sizeof event.start);
        add(out, &event.duration, sizeof event.duration);
        add(out, &event.uid, sizeof event.uid);
        add(out, &event.parent, sizeof event.parent);
        out += read.names[read.tracks[event.track].thread_name];
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
    check_parents(read);
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
