// JSON's grammar, by hand: one pass, without storing values.
#include "json_cursor.h"

#include <array>
#include <cstdint>

namespace trace {

namespace {

constexpr int DEEPEST = 512;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The classes of bytes at which `leave` stops.
enum : uint8_t { OTHER, QUOTE, OPEN, CLOSE, BACKSLASH };

constexpr std::array<uint8_t, 256> make_classes() {
    std::array<uint8_t, 256> classes{};
    classes['"'] = QUOTE;
    classes['{'] = classes['['] = OPEN;
    classes['}'] = classes[']'] = CLOSE;
    classes['\\'] = BACKSLASH;
    return classes;
}

constexpr std::array<uint8_t, 256> CLASSES = make_classes();

uint8_t class_of(char c) {
    return CLASSES[static_cast<unsigned char>(c)];
}

} // namespace

bool json_cursor::text(std::string_view &found) {
    const char *begin = at;
    if (at >= end || *at != '"') return false;
    for (at++; at < end && *at != '"'; at++) {
        if (*at != '\\') continue;
        if (++at >= end) return false;
        if (*at == 'u') {
            for (int i = 0; i < 4; i++)
                if (++at >= end || !is_hex(*at)) return false;
        } else if (std::string_view("\"\\/bfnrt").find(*at) == std::string_view::npos) {
            return false;
        }
    }
    if (at >= end) return false;
    found = {begin, size_t(++at - begin)};
    return true;
}

bool json_cursor::number(std::string_view &found) {
    const char *begin = at;
    auto digits = [this] {
        const char *first = at;
        while (at < end && is_digit(*at)) at++;
        return at > first;
    };
    if (at < end && *at == '-') at++;
    const char *first = at;
    if (!digits() || (*first == '0' && at - first > 1)) return false;
    if (at < end && *at == '.') {
        at++;
        if (!digits()) return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        if (!digits()) return false;
    }
    found = {begin, size_t(at - begin)};
    return true;
}

bool json_cursor::word(std::string_view expected) {
    if (std::string_view(at, size_t(end - at)).substr(0, expected.size()) != expected) return false;
    at += expected.size();
    return true;
}

// The content after the bracket that opens an object or a list.
bool json_cursor::nested(char close, int depth) {
    at++;
    if (depth >= DEEPEST) return false;
    if (take(close)) return true;
    do {
        std::string_view ignored;
        if (close == '}' && (!text(ignored) || !take(':'))) return false;
        if (!value(ignored, depth + 1)) return false;
    } while (take(','));
    skip_blanks();
    if (at >= end || *at != close) return false;
    at++;
    return true;
}

bool json_cursor::value(std::string_view &found, int depth) {
    if (at >= end) return false;
    const char *begin = at;
    bool whole;
    switch (*at) {
    case '"': return text(found);
    case '{': whole = nested('}', depth); break;
    case '[': whole = nested(']', depth); break;
    case 't': whole = word("true"); break;
    case 'f': whole = word("false"); break;
    case 'n': whole = word("null"); break;
    default: return number(found);
    }
    found = {begin, size_t(at - begin)};
    return whole;
}

void json_cursor::leave(int depth) {
    bool in_text = false;
    for (; at < end && depth > 0; at++) {
        uint8_t c = class_of(*at);
        if (c == OTHER) continue;
        if (c == QUOTE) {
            in_text = !in_text;
        } else if (c == BACKSLASH) {
            at++;
        } else if (!in_text) {
            depth += c == OPEN ? 1 : -1;
        }
    }
    if (at > end) at = end;
}

bool is_json_number(std::string_view text) {
    json_cursor cursor(text.data(), text.data() + text.size());
    std::string_view found;
    return cursor.number(found) && found.size() == text.size();
}

} // namespace trace
