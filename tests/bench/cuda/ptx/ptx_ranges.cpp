// The memory that kernels of a test may access: what the program allocated, to the byte. `new` and `delete`
// keep a list of it.
#include "ptx_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>

namespace {

// Allocates for the list itself, which is not in the list.
template <class T> struct Unlisted {
    using value_type = T;
    Unlisted() = default;
    template <class U> Unlisted(const Unlisted<U> &) {}
    T *allocate(size_t count) { return static_cast<T *>(std::malloc(count * sizeof(T))); }
    void deallocate(T *memory, size_t) { std::free(memory); }
    template <class U> bool operator==(const Unlisted<U> &) const { return true; }
    template <class U> bool operator!=(const Unlisted<U> &) const { return false; }
};
using Ranges = std::map<uint64_t, size_t, std::less<uint64_t>, Unlisted<std::pair<const uint64_t, size_t>>>;

Ranges &ranges() { // made at the first allocation, and never ended
    static Ranges *all = new (std::malloc(sizeof(Ranges))) Ranges;
    return *all;
}

constexpr size_t BEYOND = 64; // bytes between allocations, which are in no range

void release(void *memory) {
    ranges().erase(reinterpret_cast<uint64_t>(memory));
    std::free(memory);
}

} // namespace

void *operator new(size_t bytes) {
    void *memory = std::malloc(bytes + BEYOND);
    if (memory == nullptr) std::abort();
    ranges()[reinterpret_cast<uint64_t>(memory)] = bytes;
    return memory;
}
void operator delete(void *memory) noexcept {
    release(memory);
}
void operator delete(void *memory, size_t) noexcept {
    release(memory);
}

void ptx_check_range(uint64_t at, unsigned bytes) {
    Ranges::iterator after = ranges().upper_bound(at);
    if (after != ranges().begin()) {
        --after;
        if (at - after->first + bytes <= after->second) return;
    }
    std::printf("FAILED: PTX: an access to memory that is in no allocation\n");
    std::fflush(stdout);
    std::_Exit(1);
}
