// Distinct rows of plain data, each with a number, in the order of first appearance.
#ifndef GENTABLES_TRACE_DISTINCT_H
#define GENTABLES_TRACE_DISTINCT_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "texts.h"

namespace trace {

template <typename Row> class distinct {
    static_assert(std::has_unique_object_representations_v<Row>, "rows are compared by their bytes");

  public:
    distinct() : slots_(64, FREE) {}

    uint32_t number_of(const Row &row) {
        size_t mask = slots_.size() - 1;
        size_t at = hash(row) & mask;
        for (; slots_[at] != FREE; at = (at + 1) & mask) {
            if (std::memcmp(&rows_[slots_[at]], &row, sizeof row) == 0) return slots_[at];
        }
        slots_[at] = uint32_t(rows_.size());
        rows_.push_back(row);
        if (rows_.size() * 2 > slots_.size()) grow();
        return uint32_t(rows_.size() - 1);
    }

    const std::vector<Row> &rows() const { return rows_; }
    std::vector<Row> take() { return std::move(rows_); }

    void clear() {
        rows_.clear();
        std::fill(slots_.begin(), slots_.end(), FREE);
    }

  private:
    static constexpr uint32_t FREE = UINT32_MAX;

    static size_t hash(const Row &row) {
        return hash_bytes(reinterpret_cast<const char *>(&row), sizeof row);
    }

    void grow() {
        slots_.assign(slots_.size() * 2, FREE);
        size_t mask = slots_.size() - 1;
        for (size_t i = 0; i < rows_.size(); i++) {
            size_t at = hash(rows_[i]) & mask;
            while (slots_[at] != FREE) at = (at + 1) & mask;
            slots_[at] = uint32_t(i);
        }
    }

    std::vector<Row> rows_;
    std::vector<uint32_t> slots_;
};

} // namespace trace

#endif
