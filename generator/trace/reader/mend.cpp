// Goes through texts byte by byte; the splitter marks the chunks that need it.
#include "mend.h"

namespace trace {

namespace {

// The number of bytes of the UTF-8 character at `text`; 0: it is not one.
size_t character_length(const unsigned char *text, size_t left) {
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xC2 ? 0 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    if (length == 0 || text[0] > 0xF4 || length > left) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
    }
    bool overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
    bool beyond = (text[0] == 0xED && text[1] > 0x9F) || (text[0] == 0xF4 && text[1] > 0x8F);
    return overlong || beyond ? 0 : length;
}

// Whether a backslash before this byte changes its meaning: a quote that does not end a text, or a backslash.
bool hides_next(const unsigned char *json, size_t size, size_t at) {
    return at < size && (json[at] == '"' || json[at] == '\\');
}

// Mends the text that begins at `at`, after its quote, and moves `at` after its end. Returns the position of
// the first change, or `size`.
size_t mend_text(unsigned char *json, size_t size, size_t &at) {
    size_t first = size;
    while (at < size && json[at] != '"') {
        size_t length = character_length(json + at, size - at);
        if (length == 0 || json[at] < 0x20) {
            if (first == size) first = at;
            json[at] = length == 0 ? '?' : ' ';
        }
        bool is_escape = json[at] == '\\';
        at += length == 0 ? 1 : length;
        if (is_escape && hides_next(json, size, at)) at++;
    }
    at++;
    return first;
}

} // namespace

mended mend(char *json, size_t size) {
    auto *bytes = reinterpret_cast<unsigned char *>(json);
    mended done{0, 0};
    for (size_t at = 0; at < size;) {
        unsigned char byte = bytes[at++];
        if (byte >= 0x80) bytes[at - 1] = '?';
        // Outside texts a backslash is not JSON, but the splitter and simdjson take a quote after it as
        // escaped.
        if (byte == '\\' && hides_next(bytes, size, at)) at++;
        if (byte != '"') continue;
        size_t first = mend_text(bytes, size, at);
        if (first < size && done.texts++ == 0) done.first = first;
    }
    return done;
}

} // namespace trace
