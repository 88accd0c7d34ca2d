// The blanks of JSON.
#ifndef TRACE_BLANKS_H
#define TRACE_BLANKS_H

namespace trace {

inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

} // namespace trace

#endif
