// Output that may be compressed by gzip: pieces are compressed separately, by several threads at once, and
// together they are one gzip member.
#ifndef GENTABLES_TRACE_PACKED_H
#define GENTABLES_TRACE_PACKED_H

#include <cstdint>
#include <string>

extern "C" {
#include "system/file.h"
}

namespace trace {

bool can_pack();

// A piece of the output.
struct piece {
    std::string bytes; // as they are written
    uint64_t size = 0; // before packing
    uint32_t checksum = 0;
};

// Makes a piece of `text`, which is consumed; with `packs`, compressed.
void make_piece(std::string &text, bool packs, piece &to);

// A file that is written piece by piece; it replaces its predecessor only when it is complete.
class packed_file {
  public:
    packed_file(const std::string &path, bool packs);
    ~packed_file();
    packed_file(const packed_file &) = delete;
    packed_file &operator=(const packed_file &) = delete;

    bool open(problem &problem);
    bool write(const piece &piece, problem &problem);
    bool commit(problem &problem);

  private:
    std::string path_;
    bool packs_;
    file_stage stage_;
    uint64_t size_ = 0;
    uint32_t checksum_ = 0; // gzip's, of all pieces so far
};

} // namespace trace

#endif
