// Files, plain or unpacked by zlib and zstd. If a library is missing, its files are rejected.
#include "input.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#ifdef GENTABLES_ZLIB
#define ZLIB_CONST
#include <zlib.h>
#endif
#ifdef GENTABLES_ZSTD
#include <zstd.h>
#endif

namespace trace {

namespace {

// ---- Plain files ----------------------------------------------------------------------------

class plain_input : public input {
  public:
    plain_input(int file, const char *path, uint64_t size) : file_(file), path_(path), size_(size) {}
    ~plain_input() override { close(file_); }
    plain_input(const plain_input &) = delete;
    plain_input &operator=(const plain_input &) = delete;

    bool read(char *to, size_t size, size_t *got, problem &problem) override {
        *got = 0;
        while (*got < size) {
            ssize_t now = ::read(file_, to + *got, size - *got);
            if (now < 0 && errno == EINTR) continue;
            if (now < 0)
                return problem_set(&problem, "%s: cannot be read: %s", path_.c_str(), strerror(errno));
            if (now == 0) break;
            *got += size_t(now);
        }
        read_ += *got;
        return true;
    }

    bool is_packed() const override { return false; }
    double share_read() const override {
        return size_ == 0 ? 1 : std::min(1.0, double(read_) / double(size_));
    }

    // The first bytes, which are read again.
    std::string peek(size_t count) {
        std::string bytes(count, '\0');
        ssize_t got = pread(file_, bytes.data(), count, 0);
        bytes.resize(got > 0 ? size_t(got) : 0);
        return bytes;
    }

    const char *path() const { return path_.c_str(); }

  private:
    int file_;
    std::string path_;
    uint64_t size_;
    std::atomic<uint64_t> read_ = 0;
};

// ---- Packed files -----------------------------------------------------------------------------

// Packed bytes, a window at a time.
class packed_input : public input {
  public:
    explicit packed_input(std::unique_ptr<plain_input> file) : file_(std::move(file)), window_(WINDOW) {}

    bool is_packed() const override { return true; }
    double share_read() const override { return file_->share_read(); }

  protected:
    // Sets next and left to those of the next window; left is 0 at the end of the file.
    bool refill(problem &problem) {
        next = window_.data();
        return file_->read(window_.data(), window_.size(), &left, problem);
    }

    bool damaged(problem &problem, const char *what, uint64_t at) const {
        return problem_set(&problem, "%s: %s after %llu bytes of unpacked text", file_->path(), what,
                           static_cast<unsigned long long>(at));
    }

    const char *next = nullptr;
    size_t left = 0;
    uint64_t unpacked = 0;

  private:
    static constexpr size_t WINDOW = size_t(1) << 18;
    std::unique_ptr<plain_input> file_;
    std::vector<char> window_;
};

#ifdef GENTABLES_ZLIB
class gzip_input : public packed_input {
  public:
    explicit gzip_input(std::unique_ptr<plain_input> file) : packed_input(std::move(file)) {
        ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
    }
    ~gzip_input() override {
        if (ready_) inflateEnd(&stream_);
    }
    gzip_input(const gzip_input &) = delete;
    gzip_input &operator=(const gzip_input &) = delete;

    bool read(char *to, size_t size, size_t *got, problem &problem) override {
        if (!ready_) throw std::bad_alloc();
        *got = 0;
        while (*got < size && !at_end_) {
            if (left == 0 && !refill(problem)) return false;
            if (left == 0) return damaged(problem, "the gzip data are cut off", unpacked);
            if (!inflate_some(to + *got, size - *got, got, problem)) return false;
        }
        return true;
    }

  private:
    bool inflate_some(char *to, size_t size, size_t *got, problem &problem) {
        size_t room = std::min(size, size_t(1) << 30);
        stream_.next_in = reinterpret_cast<const Bytef *>(next);
        stream_.avail_in = uInt(left);
        stream_.next_out = reinterpret_cast<Bytef *>(to);
        stream_.avail_out = uInt(room);
        int status = inflate(&stream_, Z_NO_FLUSH);
        next += left - stream_.avail_in;
        left = stream_.avail_in;
        *got += room - stream_.avail_out;
        unpacked += room - stream_.avail_out;
        if (status == Z_STREAM_END) return next_member(problem);
        if (status == Z_MEM_ERROR) throw std::bad_alloc();
        if (status == Z_OK || status == Z_BUF_ERROR) return true;
        return damaged(problem, "the gzip data are damaged", unpacked);
    }

    // A file may contain several members, one after the other. Other data after a member are skipped.
    bool next_member(problem &problem) {
        if (left == 0 && !refill(problem)) return false;
        at_end_ = left == 0 || next[0] != '\x1f';
        return at_end_ || inflateReset(&stream_) == Z_OK;
    }

    z_stream stream_{};
    bool ready_ = false, at_end_ = false;
};
#endif

#ifdef GENTABLES_ZSTD
class zstd_input : public packed_input {
  public:
    explicit zstd_input(std::unique_ptr<plain_input> file)
        : packed_input(std::move(file)), stream_(ZSTD_createDStream()) {}
    ~zstd_input() override { ZSTD_freeDStream(stream_); }
    zstd_input(const zstd_input &) = delete;
    zstd_input &operator=(const zstd_input &) = delete;

    bool read(char *to, size_t size, size_t *got, problem &problem) override {
        if (stream_ == nullptr) throw std::bad_alloc();
        *got = 0;
        while (*got < size) {
            if (left == 0 && !refill(problem)) return false;
            if (left == 0 && frame_ends_) break;
            size_t had = *got, packed = left;
            if (!unpack_some(to, size, got, problem)) return false;
            if (packed == 0 && *got == had) return damaged(problem, "the zstd data are cut off", unpacked);
        }
        return true;
    }

  private:
    bool unpack_some(char *to, size_t size, size_t *got, problem &problem) {
        ZSTD_outBuffer out{to, size, *got};
        ZSTD_inBuffer in{next, left, 0};
        size_t wanted = ZSTD_decompressStream(stream_, &out, &in);
        unpacked += out.pos - *got;
        *got = out.pos;
        next += in.pos;
        left -= in.pos;
        if (ZSTD_isError(wanted)) return damaged(problem, "the zstd data are damaged", unpacked);
        frame_ends_ = wanted == 0;
        return true;
    }

    ZSTD_DStream *stream_;
    bool frame_ends_ = true;
};
#endif

bool starts_with(const std::string &bytes, std::string_view start) {
    return std::string_view(bytes).substr(0, start.size()) == start;
}

[[maybe_unused]] std::unique_ptr<input> refuse(problem &problem, const char *path, const char *library,
                                               const char *package) {
    problem_set(&problem,
                "%s: is packed, and this gentables was built without %s (Debian: %s); unpack it first", path,
                library, package);
    return nullptr;
}

} // namespace

std::unique_ptr<input> open_input(const char *path, problem &problem) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // opening a FIFO does not wait
    struct stat status {};
    if (file < 0 || fstat(file, &status) != 0) {
        problem_set(&problem, "%s: cannot be read: %s", path, strerror(errno));
        if (file >= 0) close(file);
        return nullptr;
    }
    auto plain = std::make_unique<plain_input>(file, path, uint64_t(status.st_size));
    if (!S_ISREG(status.st_mode)) {
        problem_set(&problem, "%s: is not a file", path);
        return nullptr;
    }
    std::string first = plain->peek(4);
    if (starts_with(first, "\x1f\x8b")) {
#ifdef GENTABLES_ZLIB
        return std::make_unique<gzip_input>(std::move(plain));
#else
        return refuse(problem, path, "zlib", "zlib1g-dev");
#endif
    }
    if (starts_with(first, "\x28\xb5\x2f\xfd")) {
#ifdef GENTABLES_ZSTD
        return std::make_unique<zstd_input>(std::move(plain));
#else
        return refuse(problem, path, "zstd", "libzstd-dev");
#endif
    }
    return plain;
}

} // namespace trace
