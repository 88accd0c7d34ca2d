// Texts that stand once each, named by a number. Not for threads: each reader has its own, and they are
// joined by intern.
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

    // The number of this text, which is copied when it is new. 0 is the empty text.
    uint32_t intern(std::string_view text);
    // Valid as long as the texts are.
    std::string_view operator[](uint32_t number) const;
    size_t size() const;

  private:
    struct table;
    table *table_;
};

} // namespace trace

#endif
