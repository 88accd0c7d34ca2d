// Copies and values of memory in the stand-in for libcuda.so.1. When a bench starts, it clears hundreds of
// MiB, and copies 64 MiB of them to time links. Pages that were never written take no memory and no time
// here: they are holes in the files of memory.cpp.
#include "queues.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace stand_in;

namespace {

void *pointer(CUdeviceptr address) {
    return reinterpret_cast<void *>(address);
}

// Whole pages of a file's mapping are removed from the file.
void clear(CUdeviceptr address, size_t bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    bool is_whole = address % page == 0 && bytes % page == 0 && bytes > 0;
    if (is_whole && madvise(pointer(address), bytes, MADV_REMOVE) == 0) return;
    std::memset(pointer(address), 0, bytes);
}

// Copies the data of a file without its holes, which are cleared in the copy.
void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    const InFile source = in_file(from, bytes);
    size_t done = 0;
    while (source.file >= 0 && done < bytes) {
        off_t here = source.at + off_t(done), all = source.at + off_t(bytes);
        off_t data = lseek(source.file, here, SEEK_DATA);
        if (data < 0 || data > all) data = all;
        off_t hole = data < all ? std::min(lseek(source.file, data, SEEK_HOLE), all) : all;
        size_t empty = size_t(data - here), full = size_t(hole - data);
        if (empty > 0) clear(to + done, empty);
        std::memcpy(pointer(to + done + empty), pointer(from + done + empty), full);
        done += empty + full;
    }
    if (source.file < 0) std::memcpy(pointer(to), pointer(from), bytes);
}

} // namespace

extern "C" {

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return enqueue(stream, [=] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); });
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult result = enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void *>(from), bytes); });
    if (result != CUDA_SUCCESS || captures > 0) return result;
    {
        std::lock_guard<std::mutex> guard(lock);
        if (is_pinned(to, bytes)) return result;
    }
    return drain(stream);
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument) {
    return enqueue(stream, [=] { function(argument); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return enqueue(stream, [=] {
        copy(to, from, bytes);
        clock_ms += number("slow_links", 0);
    });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return enqueue(stream, [=] {
        Stream *of = reinterpret_cast<Stream *>(stream);
        if (value == 0)
            clear(to, count);
        else
            std::memset(reinterpret_cast<void *>(to), value, count);
        of->lag_ms += number_of("memset_ms", of->gpu, 0);
    });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    if (to % sizeof(unsigned) != 0) return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, [=] {
        for (size_t i = 0; i < count; i++) reinterpret_cast<unsigned *>(to)[i] = value;
    });
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
    if (pitch < width || pitch > 0x7fffffff || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, [=] {
        for (size_t row = 0; row < height; row++)
            std::memset(reinterpret_cast<char *>(to) + row * pitch, value, width);
    });
}
}
