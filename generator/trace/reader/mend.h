// Invalid characters inside texts: JSON does not allow them, but profilers write names exactly as the program
// has them.
#ifndef GENTABLES_TRACE_MEND_H
#define GENTABLES_TRACE_MEND_H

#include <cstddef>
#include <cstdint>

namespace trace {

struct mended {
    uint64_t texts; // number of changed ones
    size_t first;   // position of the first change
};

// Makes the texts of `json` valid, in place: control characters become spaces, bytes that are not UTF-8
// become question marks. `json` starts outside of texts. There, bytes that are never valid JSON become
// question marks, too: they stay invalid, and can be reported with their position.
mended mend(char *json, size_t size);

} // namespace trace

#endif
