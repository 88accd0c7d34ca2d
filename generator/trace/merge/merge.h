// One trace of all ranks, for a viewer: merge_events.h describes the changes of events.
#ifndef GENTABLES_TRACE_MERGE_H
#define GENTABLES_TRACE_MERGE_H

#include <string>
#include <vector>

#include "merge_events.h"
#include "trace/reader/trace.h"

namespace trace {

struct merge_input {
    std::string path;
    int64_t rank = UNKNOWN; // UNKNOWN: the file's own, else its index
};

struct merge_options {
    std::vector<std::string> categories; // kept ones
    int workers = 1;
    bool packs = false;
    size_t chunk_size = size_t(1) << 22;
};

// The facts found about a rank.
struct merge_found {
    int64_t rank = UNKNOWN; // in the merged trace
    int64_t file_rank = UNKNOWN, world_size = UNKNOWN, base_nanoseconds = UNKNOWN;
    std::vector<std::string> devices;
    std::vector<uint64_t> kept; // events of each category
    uint64_t counts[size_t(merge_count::count)] = {};
};

// Merges the files to `path`, or leaves `path` unchanged. `found` has an entry for each file.
bool merge(const std::string &path, const std::vector<merge_input> &inputs, const merge_options &options,
           std::vector<merge_found> &found, problem &problem);

} // namespace trace

#endif
