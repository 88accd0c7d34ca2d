// The fields of a trace outside its events.
#ifndef GENTABLES_TRACE_ROOT_H
#define GENTABLES_TRACE_ROOT_H

#include "splitter.h"
#include "trace.h"

namespace trace {

// Reads rank, number of ranks, base of times and number of devices, after all chunks are cut. Throws
// bad_alloc.
bool read_root(splitter &splitter, trace &to, problem &problem);

} // namespace trace

#endif
