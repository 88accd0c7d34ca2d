// Goes over the text of one JSON value after the other without making anything of them, for what copies JSON.
// Whatever it passes over is checked, so that a copy is JSON, too; texts have to be UTF-8 without control
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
    // `behind` the last byte stands one that may be read.
    json_cursor(const char *begin, const char *behind) : at(begin), end(behind) {}

    void skip_blanks() {
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) at++;
    }

    // Passes over blanks and this byte, and blanks behind it. Returns whether it stood there; else only over
    // the blanks before it.
    bool take(char c) {
        skip_blanks();
        if (at >= end || *at != c) return false;
        at++;
        skip_blanks();
        return true;
    }

    // Each passes over the text, number or value that begins here and gives it as written; false, somewhere
    // within, where there is none.
    bool text(std::string_view &found);
    bool number(std::string_view &found);
    bool value(std::string_view &found, int depth = 0);

    // Passes over what is left of `depth` brackets that are open, by nesting alone; at the end or behind
    // them.
    void leave(int depth);

    const char *at, *const end;

  private:
    bool nested(char close, int depth);
    bool word(std::string_view expected);
};

// Whether `text` is a number as JSON has it.
bool is_json_number(std::string_view text);

} // namespace trace

#endif
