// Cuts by quotes and brackets alone. The parser checks the text between them.
#include "splitter.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#ifdef __SSE2__
#include <immintrin.h>
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE __attribute__((target("avx2,bmi,pclmul,popcnt"))) // a function for processors that have these
#endif

#include "blanks.h"

namespace trace {

// The classes of 64 bytes, a bit for each byte.
struct marks {
    uint64_t quotes = 0, backslashes = 0, opens = 0, closes = 0, controls = 0, high = 0;
};

namespace {

constexpr size_t BLOCK = 64;
constexpr size_t LARGEST = size_t(1) << 28; // of one event, and of the text around the events

bool may_be_dirty(char c) {
    return static_cast<signed char>(c) < 0x20;
} // also bytes above 0x7F

size_t skip_blanks(const char *text, size_t from, size_t to) {
    while (from < to && is_blank(text[from])) from++;
    return from;
}

// ---- 64 bytes at a time -----------------------------------------------------------------------

#ifdef __SSE2__
marks marks_of(const char *block) {
    marks found;
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block) + i);
        __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20)); // [ to {, ] to }
        auto bits = [i](__m128i mask) { return uint64_t(uint32_t(_mm_movemask_epi8(mask))) << (16 * i); };
        auto equal = [](__m128i in, char c) { return _mm_cmpeq_epi8(in, _mm_set1_epi8(c)); };
        found.quotes |= bits(equal(bytes, '"'));
        found.backslashes |= bits(equal(bytes, '\\'));
        found.opens |= bits(equal(folded, '{'));
        found.closes |= bits(equal(folded, '}'));
        found.high |= bits(bytes);
        found.controls |= bits(equal(_mm_max_epu8(bytes, _mm_set1_epi8(0x1F)), 0x1F));
    }
    return found;
}
#else
marks marks_of(const char *block) {
    marks found;
    for (size_t i = 0; i < BLOCK; i++) {
        auto byte = static_cast<unsigned char>(block[i]);
        auto bit = [i](bool is) { return uint64_t(is) << i; };
        found.quotes |= bit(byte == '"');
        found.backslashes |= bit(byte == '\\');
        found.opens |= bit((byte | 0x20) == '{');
        found.closes |= bit((byte | 0x20) == '}');
        found.high |= bit(byte >= 0x80);
        found.controls |= bit(byte < 0x20);
    }
    return found;
}
#endif

#ifdef WIDE
WIDE inline uint64_t wide_bits(__m256i low, __m256i high) {
    return uint64_t(uint32_t(_mm256_movemask_epi8(low))) | uint64_t(uint32_t(_mm256_movemask_epi8(high)))
                                                               << 32;
}

WIDE inline marks wide_marks_of(const char *block) {
    const auto *at = reinterpret_cast<const __m256i *>(block);
    __m256i low = _mm256_loadu_si256(at), high = _mm256_loadu_si256(at + 1);
    __m256i fold = _mm256_set1_epi8(0x20), control = _mm256_set1_epi8(0x1F);
    __m256i quote = _mm256_set1_epi8('"'), backslash = _mm256_set1_epi8('\\');
    __m256i open = _mm256_set1_epi8('{'), close = _mm256_set1_epi8('}');
    marks found;
    found.quotes = wide_bits(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote));
    found.backslashes = wide_bits(_mm256_cmpeq_epi8(low, backslash), _mm256_cmpeq_epi8(high, backslash));
    found.controls = wide_bits(_mm256_cmpeq_epi8(_mm256_max_epu8(low, control), control),
                               _mm256_cmpeq_epi8(_mm256_max_epu8(high, control), control));
    found.high = wide_bits(low, high);
    low = _mm256_or_si256(low, fold);
    high = _mm256_or_si256(high, fold);
    found.opens = wide_bits(_mm256_cmpeq_epi8(low, open), _mm256_cmpeq_epi8(high, open));
    found.closes = wide_bits(_mm256_cmpeq_epi8(low, close), _mm256_cmpeq_epi8(high, close));
    return found;
}

// As `parity` below: a product without carries.
WIDE inline uint64_t wide_parity(uint64_t bits) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(int64_t(bits)), _mm_set1_epi8(char(0xFF)), 0);
    return uint64_t(_mm_cvtsi128_si64(product));
}

bool has_wide() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("popcnt");
}
#endif

size_t lowest(uint64_t bits) {
    return size_t(__builtin_ctzll(bits));
}

// The number of set bits; few are set.
int64_t count_bits(uint64_t bits) {
    bits -= (bits >> 1) & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
    return int64_t((bits * 0x0101010101010101) >> 56);
}

// The bytes that follow an escaping backslash. `is_first` is 1 if the first byte does.
uint64_t escaped_by(uint64_t backslashes, uint64_t is_first) {
    uint64_t escaped = is_first;
    for (; backslashes != 0; backslashes &= backslashes - 1) {
        size_t at = lowest(backslashes);
        if (((escaped >> at) & 1) == 0 && at + 1 < BLOCK) escaped |= uint64_t(2) << at;
    }
    return escaped;
}

// Each bit: whether the number of set bits up to it is odd.
uint64_t parity(uint64_t bits) {
    for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
    return bits;
}

} // namespace

// Takes the brackets of a block one by one. Returns whether the list continues.
bool nesting::take_brackets(uint64_t opens, uint64_t closes, size_t at) {
    for (uint64_t left = opens | closes; left != 0; left &= left - 1) {
        uint64_t bit = left & -left;
        if (bit & opens) {
            depth++;
        } else if (--depth == 1) {
            last_event_end = at + lowest(bit) + 1;
        } else if (depth == 0) {
            list_end = at + lowest(bit);
            return false;
        }
    }
    return true;
}

// Removes the escaped quotes from the marks of `size` bytes.
void nesting::take_escapes(marks &found, size_t size) {
    uint64_t escaped = escaped_by(found.backslashes, is_escaped);
    found.quotes &= ~escaped;
    is_escaped = ((found.backslashes & ~escaped) >> (size - 1)) & 1;
}

// Takes the marks of a block; `texts`: the parity of its quotes.
inline __attribute__((always_inline)) void nesting::take_block(const marks &found, uint64_t texts,
                                                               size_t at) {
    texts ^= in_text;
    in_text = uint64_t(int64_t(texts) >> 63);
    is_dirty = is_dirty || (found.high | (found.controls & texts)) != 0;
    uint64_t opens = found.opens & ~texts, closes = found.closes & ~texts;
    int64_t close_count = count_bits(closes);
    if (depth - close_count > 1) {
        depth += count_bits(opens) - close_count; // no event can end in this block
    } else {
        take_brackets(opens, closes, at);
    }
}

// Takes `size` bytes of a block; the bytes after them are blank.
void nesting::scan_block(const char *block, size_t at, size_t size) {
    marks found = marks_of(block);
    if ((found.backslashes | is_escaped) != 0) take_escapes(found, size);
    take_block(found, parity(found.quotes), at);
}

#ifdef WIDE
// Takes whole blocks. Returns the end of the last one.
WIDE size_t nesting::scan_wide(const char *text, size_t from, size_t to) {
    for (; from + BLOCK <= to && list_end == 0; from += BLOCK) {
        marks found = wide_marks_of(text + from);
        if ((found.backslashes | is_escaped) != 0) take_escapes(found, BLOCK);
        take_block(found, wide_parity(found.quotes), from);
    }
    return from;
}
#else
static bool has_wide() {
    return false;
}

size_t nesting::scan_wide(const char *, size_t from, size_t) {
    return from;
}
#endif

void nesting::scan(const char *text, size_t from, size_t to) {
    static const bool is_wide = has_wide();
    if (is_wide) from = scan_wide(text, from, to);
    for (; from + BLOCK <= to && list_end == 0; from += BLOCK) scan_block(text + from, from, BLOCK);
    if (from >= to || list_end != 0) return;
    char last[BLOCK];
    std::memset(last, ' ', BLOCK);
    std::memcpy(last, text + from, to - from);
    scan_block(last, from, to - from);
}

// ---- The text around the events ---------------------------------------------------------------

// The byte at `at`, outside of texts.
outline::found outline::take(const std::string &text) {
    char c = text[at];
    if (wants_events && c != '[') return found::no_list;
    switch (c) {
    case '"':
        in_text = true;
        text_begin = at + 1;
        break;
    case ':':
        wants_events =
            depth == 1 && std::string_view(text).substr(text_begin, text_end - text_begin) == "traceEvents";
        if (wants_events && has_events) return found::twice;
        break;
    case '{':
    case '[':
        depth++;
        if (!wants_events && !(depth == 1 && c == '[')) break;
        wants_events = false;
        has_events = true;
        return found::events;
    case '}':
    case ']':
        if (--depth <= 0) return found::end;
        break;
    }
    return depth == 0 ? found::no_root : found::nothing;
}

outline::found outline::scan(const std::string &text) {
    for (; at < text.size(); at++) {
        char c = text[at];
        if (in_text) {
            if (c == '"' && !is_escaped) {
                in_text = false;
                text_end = at;
            }
            is_escaped = c == '\\' && !is_escaped;
        } else if (!is_blank(c)) {
            found what = take(text);
            if (what != found::nothing) return what;
        }
    }
    return found::nothing;
}

// ---- Chunks -----------------------------------------------------------------------------------

void chunk::reserve(size_t room) {
    if (room <= room_) return;
    std::unique_ptr<char[]> memory(new char[room + PADDING]);
    if (size > 0) std::memcpy(memory.get(), text, size);
    memory_ = std::move(memory);
    text = memory_.get();
    room_ = room;
}

splitter::splitter(input &input, const char *path, size_t chunk_size)
    : input_(input), path_(path), chunk_size_(std::max(chunk_size, BLOCK)) {}

bool splitter::fail(problem &problem, uint64_t offset, const char *what) const {
    return problem_set(&problem, "%s: byte %llu%s: %s", path_, static_cast<unsigned long long>(offset),
                       input_.is_packed() ? " of the unpacked text" : "", what);
}

// Reports an unexpected end of the text: a read error, or a truncated file.
bool splitter::fail_end(problem &problem, const char *what) const {
    if (!input_failed_) return fail(problem, read_, what);
    problem = input_problem_;
    return false;
}

// Reads `size` bytes, fewer at the end. After a read error the file ends here; fail_end reports it.
bool splitter::read_more(char *to, size_t size, size_t *got) {
    *got = 0;
    if (at_end_) return false;
    if (!input_.read(to, size, got, input_problem_)) input_failed_ = true;
    read_ += *got;
    at_end_ = input_failed_ || *got < size;
    return *got > 0;
}

// Appends to the rest.
bool splitter::read_rest(bool *more, problem &problem) {
    constexpr size_t STEP = size_t(1) << 16;
    size_t had = rest_.size(), got = 0;
    if (had > LARGEST) return fail(problem, read_, "no traceEvents in 256 MiB; not a profiler trace");
    rest_.resize(had + STEP);
    *more = read_more(rest_.data() + had, STEP, &got);
    rest_.resize(had + got);
    return true;
}

bool splitter::fail_outline(outline::found found, problem &problem) const {
    const char *what = "the text ends here, without traceEvents; not a profiler trace, or cut off";
    if (found == outline::found::nothing) return fail_end(problem, what);
    if (found == outline::found::no_list) what = "not a profiler trace: traceEvents is not a list of objects";
    if (found == outline::found::twice) what = "a second traceEvents; a trace has one list";
    if (found == outline::found::no_root) what = "not a profiler trace: it begins with neither { nor [";
    if (found == outline::found::end) what = "not a profiler trace: it has no traceEvents";
    return fail(problem, offset_of(outline_.at), what);
}

// Reads up to the bracket that opens the list of events.
bool splitter::find_events(problem &problem) {
    auto found = outline::found::nothing;
    head_ = SIZE_MAX;
    for (bool more = true; found == outline::found::nothing && more;) {
        if (!read_rest(&more, problem)) return false;
        constexpr std::string_view BYTE_ORDER_MARK = "\xEF\xBB\xBF";
        if (outline_.at == 0 && std::string_view(rest_).substr(0, 3) == BYTE_ORDER_MARK) {
            rest_.replace(0, BYTE_ORDER_MARK.size(), BYTE_ORDER_MARK.size(), ' ');
        }
        found = outline_.scan(rest_);
    }
    if (found != outline::found::events) return fail_outline(found, problem);
    head_ = outline_.at + 1;
    carry_ = rest_.substr(head_);
    carry_offset_ = head_;
    rest_.resize(head_);
    outline_.at = head_;
    return true;
}

// Fills the chunk from the carried and newly read bytes, until an event, the list or the file ends.
bool splitter::fill(chunk &to, problem &problem) {
    // Does not fill the chunk's whole room: the position of the cut must not depend on the chunk's earlier
    // content.
    size_t room = std::max(chunk_size_, carry_.size() + 1);
    to.size = 0;
    to.reserve(room);
    to.text[0] = '[';
    std::memcpy(to.text + 1, carry_.data(), carry_.size());
    to.size = 1 + carry_.size();
    to.offset = carry_offset_ - 1;
    size_t scanned = 1 + carry_scanned_;
    nesting_.last_event_end = 0;
    for (;;) {
        size_t got;
        read_more(to.text + to.size, room - to.size, &got);
        to.size += got;
        nesting_.scan(to.text, scanned, to.size);
        scanned = to.size;
        if (nesting_.last_event_end > 0 || nesting_.list_end > 0 || at_end_) return true;
        if (to.size > LARGEST) {
            return fail(problem, to.offset + 1,
                        "from here no event ends within 256 MiB; a text may be unclosed");
        }
        room *= 2;
        to.reserve(room);
    }
}

// Removes the comma at the beginning of each chunk but the first.
bool splitter::take_comma(chunk &to, bool is_last, problem &problem) {
    size_t last = to.size - 1, first = skip_blanks(to.text, 1, last);
    if (is_first_ || (is_last && first == last)) {
        is_first_ = false;
        return true;
    }
    if (to.text[first] != ',') return fail(problem, to.offset + first, "not JSON: a comma is missing here");
    to.text[first] = ' ';
    if (skip_blanks(to.text, first, last) < last) return true;
    return fail(problem, to.offset + last, "not JSON: an event is missing here");
}

bool splitter::end_list(chunk &to, problem &problem) {
    size_t end = nesting_.list_end;
    head_ = rest_.size();
    rest_.append(to.text + end, to.size - end);
    tail_offset_ = to.offset + end;
    to.size = end + 1;
    to.text[end] = ']';
    state_ = state::tail;
    return take_comma(to, true, problem);
}

// Cuts after the last whole event.
bool splitter::cut(chunk &to, problem &problem) {
    to.is_dirty = nesting_.is_dirty;
    if (nesting_.list_end > 0) return end_list(to, problem);
    size_t end = nesting_.last_event_end;
    if (end == 0) return fail_end(problem, "the text ends here, within traceEvents; the file may be cut off");
    carry_.assign(to.text + end, to.size - end);
    carry_offset_ = to.offset + end;
    carry_scanned_ = carry_.size();
    nesting_.is_dirty = nesting_.is_dirty && std::any_of(carry_.begin(), carry_.end(), may_be_dirty);
    to.text[end] = ']';
    to.size = end + 1;
    return take_comma(to, false, problem);
}

// Reads the text after the events.
bool splitter::finish(problem &problem) {
    auto found = outline_.scan(rest_);
    for (bool more = true; found == outline::found::nothing && more;) {
        if (!read_rest(&more, problem)) return false;
        found = outline_.scan(rest_);
    }
    if (found == outline::found::nothing) {
        return fail_end(problem, "the text ends here, after traceEvents; the file may be cut off");
    }
    if (found != outline::found::end) return fail_outline(found, problem);
    size_t end = outline_.at + 1;
    for (bool more = true; more;) {
        end = skip_blanks(rest_.data(), end, rest_.size());
        if (end < rest_.size()) return fail(problem, offset_of(end), "not JSON: the root ended before this");
        if (!read_rest(&more, problem)) return false;
    }
    return !input_failed_ || fail_end(problem, "");
}

splitter::result splitter::next(chunk &to, problem &problem) {
    if (state_ == state::head) {
        if (!find_events(problem)) return result::failed;
        state_ = state::events;
    }
    if (state_ == state::tail) return finish(problem) ? result::end : result::failed;
    return fill(to, problem) && cut(to, problem) ? result::chunk : result::failed;
}

} // namespace trace
