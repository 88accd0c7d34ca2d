// The nesting of text that is scanned as a whole, where the processor may take 64 bytes at a time with its
// widest instructions, equals that of pieces that are too short for them.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "trace/reader/splitter.h"

using trace::nesting;

namespace {

// Text within a list of events: brackets, quotes, backslashes and other bytes, with most brackets balanced.
std::string random_text(std::mt19937 &random, size_t size) {
    static constexpr char BYTES[] = "{{[[}}]]\"\"\\,: 01az\n\x1F\x80";
    std::string text = " "; // the list does not end at 0, which means that it has not ended
    int depth = 1;
    unsigned rare = random() % 2 == 0 ? 40 : 4; // of 10 bytes that matter, so that some texts are long
    while (text.size() < size) {
        char c = random() % rare < 3 ? BYTES[random() % (sizeof BYTES - 1)] : 'x';
        if (c == '{' || c == '[') depth++;
        if ((c == '}' || c == ']') && --depth < 1 && random() % 50 > 0) {
            depth = 1;
            continue;
        }
        text += c;
    }
    return text;
}

nesting in_pieces(std::mt19937 &random, const std::string &text) {
    nesting scanned;
    for (size_t from = 0; from < text.size() && scanned.list_end == 0;) {
        size_t to = std::min(text.size(), from + 1 + random() % 63);
        scanned.scan(text.data(), from, to);
        from = to;
    }
    return scanned;
}

// After the end of the list, the rest of a block may be scanned or not.
bool is_same(const nesting &a, const nesting &b) {
    if (a.depth != b.depth || a.last_event_end != b.last_event_end || a.list_end != b.list_end) return false;
    if (a.list_end != 0) return true;
    return a.in_text == b.in_text && a.is_escaped == b.is_escaped && a.is_dirty == b.is_dirty;
}

} // namespace

int main() {
    std::mt19937 random(1);
    int ended = 0, with_events = 0;
    for (int i = 0; i < 20000; i++) {
        std::string text = random_text(random, random() % 700);
        nesting whole;
        whole.scan(text.data(), 0, text.size());
        if (!is_same(whole, in_pieces(random, text))) {
            std::printf("text %d differs: %s\n", i, text.c_str());
            return 1;
        }
        ended += whole.list_end != 0;
        with_events += whole.last_event_end != 0;
    }
    std::printf("%d texts with the end of the list, %d with events\n", ended, with_events);
    return ended > 1000 && with_events > 5000 ? 0 : 1;
}
