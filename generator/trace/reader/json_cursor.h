// Passes over the text of one JSON value after the other without storing it, for programs that copy JSON. It
// checks the text that it passes over, so that a copy is JSON, too; texts have to be UTF-8 without control
// characters already (see trace/reader/mend.h).
//
// simdjson returns values as they are written only by its On Demand API, which does not check them and is no
// faster here.
#ifndef GENTABLES_TRACE_JSON_CURSOR_H
#define GENTABLES_TRACE_JSON_CURSOR_H

#include <string_view>

namespace trace {

class json_cursor {
  public:
    // The byte after the last one must be readable.
    json_cursor(const char *begin, const char *behind) : at(begin), end(behind) {}

    void skip_blanks() {
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) at++;
    }

    // Passes over blanks and this byte, and the blanks after it. Returns whether the byte was there; if not,
    // passes only over the blanks before it.
    bool take(char c) {
        skip_blanks();
        if (at >= end || *at != c) return false;
        at++;
        skip_blanks();
        return true;
    }

    // Each passes over the text, number or value that begins here and returns it as written; returns false,
    // at any position within, if there is none.
    bool text(std::string_view &found);
    bool number(std::string_view &found);
    bool value(std::string_view &found, int depth = 0);

    // Passes over the rest of `depth` open brackets, by nesting alone, up to the position after them or the
    // end.
    void leave(int depth);

    const char *at, *const end;

  private:
    bool nested(char close, int depth);
    bool word(std::string_view expected);
};

// Whether `text` is a JSON number. simdjson rejects those beyond the range of doubles.
bool is_json_number(std::string_view text);

} // namespace trace

#endif
