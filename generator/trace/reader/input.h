// A file as a stream of its bytes: plain, or unpacked from gzip or zstd (all members). Nothing is kept.
#ifndef GENTABLES_TRACE_INPUT_H
#define GENTABLES_TRACE_INPUT_H

#include <cstddef>
#include <cstdint>
#include <memory>

extern "C" {
#include "base/problem.h"
}

namespace trace {

class input {
  public:
    virtual ~input() = default;
    // Up to `size` bytes, fewer only at the end, 0 after it. false: the bytes after those that were read
    // cannot be read.
    virtual bool read(char *to, size_t size, size_t *got, problem &problem) = 0;
    virtual bool is_packed() const = 0;
    // The share of the file that is read, from 0 to 1. Other threads may call it.
    virtual double share_read() const = 0;
};

// Opens the file at `path`; its first bytes show whether it is gzip, zstd, or plain. Null: `problem` has the
// reason.
std::unique_ptr<input> open_input(const char *path, problem &problem);

} // namespace trace

#endif
