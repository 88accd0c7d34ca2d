// Distinct texts: the bytes in blocks that never move, and an open hash table of their numbers.
#include "texts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace trace {

uint64_t hash_bytes(const char *data, size_t size) {
    constexpr uint64_t FACTOR = 0x9E3779B97F4A7C15;
    uint64_t hash = size * FACTOR;
    auto mix = [&](uint64_t word) {
        hash = (hash ^ word) * FACTOR;
        hash ^= hash >> 29;
    };
    uint64_t word;
    for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
        std::memcpy(&word, data, sizeof word);
        mix(word);
    }
    word = 0;
    if (size > 0) std::memcpy(&word, data, size);
    mix(word);
    return hash;
}

namespace {

constexpr size_t BLOCK = size_t(1) << 16;
constexpr uint32_t MISSING = UINT32_MAX;

struct entry {
    const char *data;
    size_t size;
    uint64_t hash;
};

} // namespace

struct texts::table {
    std::vector<std::unique_ptr<char[]>> blocks; // of BLOCK bytes each
    size_t blocks_used = 0;
    char *free = nullptr; // in the last block that is used
    size_t room = 0;
    std::vector<std::unique_ptr<char[]>> large; // texts larger than a block
    std::vector<entry> entries;
    std::vector<uint32_t> slots; // number of a text, or MISSING

    const char *keep(std::string_view text) {
        if (text.empty()) return "";
        if (text.size() > BLOCK / 4) {
            large.emplace_back(new char[text.size()]);
            return static_cast<const char *>(std::memcpy(large.back().get(), text.data(), text.size()));
        }
        if (text.size() > room) {
            if (blocks_used == blocks.size()) blocks.emplace_back(new char[BLOCK]);
            free = blocks[blocks_used++].get();
            room = BLOCK;
        }
        char *to = free;
        free += text.size();
        room -= text.size();
        return static_cast<const char *>(std::memcpy(to, text.data(), text.size()));
    }

    // The slot of this text, or the free one that it would take.
    size_t slot(std::string_view text, uint64_t hash) const {
        size_t mask = slots.size() - 1;
        for (size_t at = hash & mask;; at = (at + 1) & mask) {
            if (slots[at] == MISSING) return at;
            const entry &there = entries[slots[at]];
            if (there.hash == hash && std::string_view(there.data, there.size) == text) return at;
        }
    }

    void grow() {
        slots.assign(slots.size() * 2, MISSING);
        size_t mask = slots.size() - 1;
        for (size_t i = 0; i < entries.size(); i++) {
            size_t at = entries[i].hash & mask;
            while (slots[at] != MISSING) at = (at + 1) & mask;
            slots[at] = uint32_t(i);
        }
    }
};

texts::texts() : table_(new table) {
    table_->slots.assign(64, MISSING);
    intern("");
}

texts::~texts() {
    delete table_;
}

texts::texts(texts &&other) noexcept : table_(std::exchange(other.table_, nullptr)) {}

texts &texts::operator=(texts &&other) noexcept {
    std::swap(table_, other.table_);
    return *this;
}

uint32_t texts::intern(std::string_view text) {
    uint64_t hash = hash_bytes(text.data(), text.size());
    size_t at = table_->slot(text, hash);
    if (table_->slots[at] != MISSING) return table_->slots[at];
    auto number = uint32_t(table_->entries.size());
    table_->entries.push_back({table_->keep(text), text.size(), hash});
    table_->slots[at] = number;
    if (table_->entries.size() * 2 > table_->slots.size()) table_->grow();
    return number;
}

std::string_view texts::operator[](uint32_t number) const {
    const entry &found = table_->entries[number];
    return {found.data, found.size};
}

size_t texts::size() const {
    return table_->entries.size();
}

void texts::clear() {
    table_->blocks_used = table_->room = 0;
    table_->large.clear();
    table_->entries.clear();
    std::fill(table_->slots.begin(), table_->slots.end(), MISSING);
    intern("");
}

} // namespace trace
