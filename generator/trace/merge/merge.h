// One trace of all ranks, for a viewer: merge_events.h says what becomes of an event.
#ifndef GENTABLES_TRACE_MERGE_H
#define GENTABLES_TRACE_MERGE_H

#include <string>
#include <vector>

#include "merge_events.h"
#include "trace/reader/trace.h"

namespace trace {

struct merge_input {
    std::string path;
    int64_t rank = UNKNOWN; // UNKNOWN: what the file says, else its place
};

struct merge_options {
    std::vector<std::string> categories; // that are kept
    int workers = 1;
    bool packs = false;
    size_t chunk_size = size_t(1) << 22;
};

// What was found of a rank.
struct merge_found {
    int64_t rank = UNKNOWN; // in the merged trace
    int64_t file_rank = UNKNOWN, world_size = UNKNOWN, base_nanoseconds = UNKNOWN;
    std::vector<std::string> devices;
    std::vector<uint64_t> kept; // events of each category
    uint64_t counts[size_t(merge_count::count)] = {};
};

// Merges the files to `path`, whole or not at all. `found` has an entry for each file.
bool merge(const std::string &path, const std::vector<merge_input> &inputs, const merge_options &options,
           std::vector<merge_found> &found, problem &problem);

} // namespace trace

#endif
