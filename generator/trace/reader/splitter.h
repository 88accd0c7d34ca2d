// Cuts the text of a trace into chunks of whole events, so that a file of any size is read in little memory.
// The text around the events is kept apart: the root without them. Checks only the nesting.
#ifndef GENTABLES_TRACE_SPLITTER_H
#define GENTABLES_TRACE_SPLITTER_H

#include <string>

#include "input.h"

namespace trace {

// Events as a JSON array, followed by the parser's padding.
class chunk {
  public:
    static constexpr size_t PADDING = 64; // bytes; part.cpp checks that it is enough for simdjson

    char *text = nullptr;  // starts with '['
    size_t size = 0;       // with both brackets
    uint64_t offset = 0;   // text[i] is byte offset + i of the unpacked file
    bool is_dirty = false; // whether it needs mending

    // Makes room for `room` bytes of text and the padding; keeps the first `size` of them.
    void reserve(size_t room);
    size_t room() const { return room_; }

  private:
    std::unique_ptr<char[]> memory_;
    size_t room_ = 0;
};

// The nesting of JSON at a position in text that is scanned byte by byte: the text around the events.
struct outline {
    enum class found { nothing, events, no_list, twice, no_root, end };

    size_t at = 0; // scanned so far
    int64_t depth = 0;
    bool in_text = false, is_escaped = false, wants_events = false, has_events = false;
    size_t text_begin = 0, text_end = 0; // of the last text

    // Continues the scan. events: at `at` begins the list of traceEvents. end: at `at` the root has ended.
    found scan(const std::string &text);

  private:
    found take(const std::string &text);
};

// The nesting of JSON at a position in text that is scanned 64 bytes at a time: the text of the events.
struct nesting {
    int64_t depth = 1;         // 1: between events
    uint64_t in_text = 0;      // all ones: within a text
    uint64_t is_escaped = 0;   // 1: the next byte is
    size_t last_event_end = 0; // the position after it; 0: there was none
    size_t list_end = 0;       // position of the list's ']'; 0: not yet
    bool is_dirty = false;

    // Scans text[from] to text[to - 1], or to the end of the list.
    void scan(const char *text, size_t from, size_t to);

  private:
    void take_escapes(struct marks &found, size_t size);
    void take_block(const struct marks &found, uint64_t texts, size_t at);
    void scan_block(const char *block, size_t at, size_t size);
    size_t scan_wide(const char *text, size_t from, size_t to);
    bool take_brackets(uint64_t opens, uint64_t closes, size_t at);
};

class splitter {
  public:
    // Cuts chunks of about `chunk_size` bytes; an event that is larger gets a larger one.
    splitter(input &input, const char *path, size_t chunk_size);

    enum class result { chunk, end, failed };

    // The next chunk; or the end, after which `rest` is complete; or `problem`. Throws bad_alloc.
    result next(chunk &to, problem &problem);

    // Whether the file is read to its end.
    bool at_end() const { return at_end_; }
    // The root as JSON, its traceEvents an empty list.
    std::string &rest() { return rest_; }
    // The position in the unpacked file of the rest's byte at `at`.
    uint64_t offset_of(size_t at) const { return at < head_ ? at : at - head_ + tail_offset_; }

    // `problem` as FILE: byte N: `what`. Returns false.
    bool fail(problem &problem, uint64_t offset, const char *what) const;

  private:
    bool read_more(char *to, size_t size, size_t *got);
    bool read_rest(bool *more, problem &problem);
    bool find_events(problem &problem);
    bool fill(chunk &to, problem &problem);
    bool cut(chunk &to, problem &problem);
    bool end_list(chunk &to, problem &problem);
    bool take_comma(chunk &to, bool is_last, problem &problem);
    bool finish(problem &problem);
    bool fail_outline(outline::found found, problem &problem) const;
    bool fail_end(problem &problem, const char *what) const;

    enum class state { head, events, tail };

    input &input_;
    const char *path_;
    size_t chunk_size_;
    state state_ = state::head;
    outline outline_;
    nesting nesting_;
    std::string carry_;         // read, but not yet in a chunk
    uint64_t carry_offset_ = 0; // of its first byte in the file
    size_t carry_scanned_ = 0;
    uint64_t read_ = 0; // bytes so far
    bool is_first_ = true, at_end_ = false, input_failed_ = false;
    problem input_problem_{};
    std::string rest_;
    size_t head_ = 0; // bytes of the rest before the events
    uint64_t tail_offset_ = 0;
};

} // namespace trace

#endif
