// Shared by fuzz targets: a file in memory, and an end with a message.
#ifndef GENTABLES_FUZZ_FILE_IN_MEMORY_H
#define GENTABLES_FUZZ_FILE_IN_MEMORY_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

[[noreturn]] inline void die(const char *what, const std::string &one = "", const std::string &other = "") {
    fprintf(stderr, "%s:\n%s\n%s\n", what, one.c_str(), other.c_str());
    abort();
}

// A file with these bytes, and a path to it.
class file_in_memory {
  public:
    file_in_memory(const void *data, size_t size) : number_(memfd_create("fuzz", MFD_CLOEXEC)) {
        if (number_ < 0 || write(number_, data, size) != ssize_t(size)) die("no file in memory");
        path_ = "/proc/self/fd/" + std::to_string(number_);
    }
    ~file_in_memory() { close(number_); }
    file_in_memory(const file_in_memory &) = delete;
    file_in_memory &operator=(const file_in_memory &) = delete;
    const std::string &path() const { return path_; }

  private:
    int number_;
    std::string path_;
};

#endif
