// A file as a stream of its bytes: plain, or what gzip or zstd (all members) unpack to. Nothing is kept.
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
    // Up to `size` bytes, fewer only at the end, 0 behind it. false: what follows those that
    // were got cannot be read.
    virtual bool read(char *to, size_t size, size_t *got, problem &problem) = 0;
    virtual bool is_packed() const = 0;
    // How much of the file is read, of 1. Another thread may ask.
    virtual double share_read() const = 0;
};

// Opens the file at `path`; by its first bytes it is gzip, zstd, or plain. Null: `problem` says why not.
std::unique_ptr<input> open_input(const char *path, problem &problem);

} // namespace trace

#endif
