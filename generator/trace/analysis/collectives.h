// Finds the kernels that communicate.
#ifndef GENTABLES_TRACE_COLLECTIVES_H
#define GENTABLES_TRACE_COLLECTIVES_H

#include <string_view>
#include <vector>

#include "trace/reader/trace.h"

namespace trace {

// Whether a kernel of this name communicates, by lists/communication.lua.
bool is_communication(std::string_view kernel);

// The kernels that communicate: event numbers, in order of the file.
std::vector<uint32_t> communication_kernels(const trace &trace);

} // namespace trace

#endif
