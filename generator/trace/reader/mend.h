// What JSON does not take inside texts, and profilers write there nevertheless: names as the program had
// them.
#ifndef GENTABLES_TRACE_MEND_H
#define GENTABLES_TRACE_MEND_H

#include <cstddef>
#include <cstdint>

namespace trace {

struct mended {
    uint64_t texts; // how many were changed
    size_t first;   // where the first change is
};

// Makes the texts of `json` valid, in place: control characters become spaces, bytes that are no UTF-8
// question marks. `json` starts outside of texts; there, bytes that no JSON has become question marks, too,
// which are as wrong, and can be reported with their place.
mended mend(char *json, size_t size);

} // namespace trace

#endif
