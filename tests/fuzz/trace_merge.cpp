// Fuzzes the merge of traces: any two files are rejected in one line, or merged to a trace that the reader
// accepts, and the result does not depend on the number of workers. The input is both files.
#include <cstring>

#include "file_in_memory.h"
#include "trace/merge/merge.h"

namespace {

std::string bytes_of(const std::string &path) {
    std::string bytes;
    FILE *file = fopen(path.c_str(), "rb");
    if (file == nullptr) die("nothing was written", path);
    char some[1 << 14];
    for (size_t got; (got = fread(some, 1, sizeof some, file)) > 0;) bytes.append(some, got);
    fclose(file);
    return bytes;
}

// The merged trace, or why there is none.
std::string outcome(const std::string &path, int workers, bool *is_merged) {
    static const std::string to = "/tmp/fuzz_trace_merge." + std::to_string(getpid());
    trace::merge_options options;
    options.categories = {"kernel",          "gpu_memcpy", "cpu_op", "cuda_runtime",
                          "user_annotation", "ac2g",       "fwdbwd"};
    options.workers = workers;
    options.chunk_size = 300;
    std::vector<trace::merge_found> found;
    problem problem{};
    *is_merged = trace::merge(to, {{path, 0}, {path, 1}}, options, found, problem);
    if (*is_merged) {
        std::string bytes = bytes_of(to);
        unlink(to.c_str());
        return bytes;
    }
    if (strchr(problem.text, '\n') != nullptr) die("more than a line", problem.text);
    return problem.text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    file_in_memory file(data, size);
    bool is_merged, is_read;
    std::string merged = outcome(file.path(), 1, &is_merged);
    std::string together = outcome(file.path(), 3, &is_read);
    if (merged != together) die("another outcome with several workers", merged, together);
    if (!is_merged) return 0;
    file_in_memory result(merged.data(), merged.size());
    trace::trace read;
    problem problem{};
    if (!trace::read(result.path().c_str(), {}, read, problem)) die("is no trace", problem.text, merged);
    if (read.flaws[size_t(trace::flaw::mended)] > 0) die("texts that JSON does not take", merged);
    return 0;
}
