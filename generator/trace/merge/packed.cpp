// Each piece ends at a byte (a full flush), so that pieces can follow each other; head and tail are gzip's.
#include "packed.h"

#include <new>

#ifdef GENTABLES_ZLIB
#include <zlib.h>
#endif

namespace trace {

#ifdef GENTABLES_ZLIB

namespace {

constexpr int LEVEL = 1; // a third of the default level's time, for a tenth more bytes

constexpr char HEAD[] = {'\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, '\x03'}; // no name, no time
constexpr char LAST_BLOCK[] = {'\x03', 0};

std::string little_endian(uint32_t number) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes += char((number >> shift) & 255);
    return bytes;
}

void deflate_piece(std::string &text, piece &to) {
    z_stream stream{};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
    to.bytes.resize(deflateBound(&stream, uLong(text.size())) + 16);
    stream.next_in = reinterpret_cast<Bytef *>(text.data());
    stream.avail_in = uInt(text.size());
    stream.next_out = reinterpret_cast<Bytef *>(to.bytes.data());
    stream.avail_out = uInt(to.bytes.size());
    deflate(&stream, Z_FULL_FLUSH);
    to.bytes.resize(to.bytes.size() - stream.avail_out);
    deflateEnd(&stream);
    to.checksum = uint32_t(crc32(0, reinterpret_cast<const Bytef *>(text.data()), uInt(text.size())));
    to.size = text.size();
    text.clear();
}

} // namespace

bool can_pack() {
    return true;
}

#else

bool can_pack() {
    return false;
}

#endif

void make_piece(std::string &text, bool packs, piece &to) {
#ifdef GENTABLES_ZLIB
    if (packs) return deflate_piece(text, to);
#endif
    (void)packs;
    to.size = text.size();
    to.bytes.swap(text);
    text.clear();
}

packed_file::packed_file(const std::string &path, bool packs)
    : path_(path), packs_(packs && can_pack()), stage_{-1, nullptr, nullptr, nullptr, false} {}

packed_file::~packed_file() {
    file_stage_drop(&stage_);
}

bool packed_file::open(problem &problem) {
    if (!file_stage_open(&stage_, path_.c_str(), &problem)) return false;
    checksum_ = 0; // crc32 of an empty text
#ifdef GENTABLES_ZLIB
    if (packs_) return file_stage_write(&stage_, HEAD, sizeof HEAD, &problem);
#endif
    return true;
}

bool packed_file::write(const piece &piece, problem &problem) {
#ifdef GENTABLES_ZLIB
    if (packs_) checksum_ = uint32_t(crc32_combine(checksum_, piece.checksum, z_off_t(piece.size)));
#endif
    size_ += piece.size;
    return file_stage_write(&stage_, piece.bytes.data(), piece.bytes.size(), &problem);
}

bool packed_file::commit(problem &problem) {
#ifdef GENTABLES_ZLIB
    if (packs_) {
        std::string tail(LAST_BLOCK, sizeof LAST_BLOCK);
        tail += little_endian(checksum_) + little_endian(uint32_t(size_));
        if (!file_stage_write(&stage_, tail.data(), tail.size(), &problem)) return false;
    }
#endif
    return file_stage_commit(&stage_, false, &problem);
}

} // namespace trace
