// Distinct texts, each with a number, in the order of first appearance. Not thread-safe: each part of a trace
// has its own, and intern joins them.
#ifndef GENTABLES_TRACE_TEXTS_H
#define GENTABLES_TRACE_TEXTS_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace trace {

class texts {
  public:
    texts();
    ~texts();
    texts(const texts &) = delete;
    texts &operator=(const texts &) = delete;
    texts(texts &&) noexcept;
    texts &operator=(texts &&) noexcept;

    // The number of this text; a new text is copied. 0 is the empty text. Throws bad_alloc.
    uint32_t intern(std::string_view text);
    // Valid as long as the texts are.
    std::string_view operator[](uint32_t number) const;
    size_t size() const;
    // Removes all texts but the empty one; keeps the memory.
    void clear();

  private:
    struct table;
    table *table_;
};

// The key of a hash table: equal bytes, equal number.
uint64_t hash_bytes(const char *data, size_t size);

} // namespace trace

#endif
