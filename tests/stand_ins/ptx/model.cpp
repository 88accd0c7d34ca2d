// The memory of model.h. Threads have vector clocks. The engine reports order to ThreadSanitizer where a
// program has it (engine_sanitizers.h); here the same functions report it to this model.
#include "model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

namespace {

// All that is ordered before some point.
struct Clock {
    std::vector<uint32_t> times; // by thread
    uint64_t fence_count = 0;    // of the last fence of aliases
};

struct Thread {
    Clock known; // its own time is at its own place
    uint32_t fence_time = 0;
};

// Four bytes, aligned.
struct Word {
    uint32_t before = 0, last = 0;
    size_t writer = 0;
    uint32_t time = 0; // of the writer; 0: the host wrote it
    bool is_plain = false;
    Name name = Name::own;
    uint64_t count = 0;              // of stores and fences until that store
    std::shared_ptr<Clock> released; // by that store
    std::vector<bool> seen;          // by thread: has loaded the last value
    Clock plain_loads, other_loads;  // since that store, by thread
};

std::vector<Thread> threads; // a thread that has ended leaves its place, and its time, to another one
std::vector<size_t> spare;
std::unordered_map<uint64_t, Word> words;
std::unordered_map<const void *, Clock> orders; // of the engine
size_t current;
uint64_t count, random_state;
const char *const NO_FENCE = "two names of a word, and no fence";

uint32_t &time_of(Clock &clock, size_t thread) {
    if (clock.times.size() <= thread) clock.times.resize(thread + 1);
    return clock.times[thread];
}

void join(Clock &into, const Clock &from) {
    if (into.times.size() < from.times.size()) into.times.resize(from.times.size());
    for (size_t i = 0; i < from.times.size(); i++) into.times[i] = std::max(into.times[i], from.times[i]);
    into.fence_count = std::max(into.fence_count, from.fence_count);
}

bool is_old_value() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 33 & 1;
}

void fail(const char *what) {
    std::printf("FAILED: PTX model: %s\n", what);
    std::fflush(stdout);
    std::_Exit(1);
}

// The word at an address. If its bytes are not those of the last store, the host has written it.
Word &word_at(uint64_t at) {
    uint32_t value;
    std::memcpy(&value, reinterpret_cast<const void *>(at), sizeof value);
    auto [found, is_new] = words.try_emplace(at);
    if (is_new || found->second.last != value) {
        found->second = Word{};
        found->second.before = found->second.last = value;
    }
    return found->second;
}

bool is_ordered(const Word &word, Clock &known) {
    return time_of(known, word.writer) >= word.time;
}

// Whether an access by this name comes after a store by another one, with no fence of aliases between both.
bool lacks_fence(const Word &word, Name name, const Clock &known) {
    return word.time > 0 && word.name != name && threads[word.writer].fence_time < word.time &&
           known.fence_count < word.count;
}

uint32_t load_word(uint64_t at, Order order, Name name) {
    Word &word = word_at(at);
    Thread &self = threads[current];
    bool ordered = is_ordered(word, self.known);
    if (!ordered && (order == Order::plain || word.is_plain)) fail("a race: a load and a store");
    time_of(order == Order::plain ? word.plain_loads : word.other_loads, current) =
        ++time_of(self.known, current);
    bool unfenced = lacks_fence(word, name, self.known);
    if (unfenced && order != Order::relaxed) fail(NO_FENCE);
    if (word.seen.size() <= current) word.seen.resize(current + 1);
    if ((unfenced || (!ordered && !word.seen[current])) && is_old_value()) return word.before;
    word.seen[current] = true;
    if (order == Order::acquire && word.released) join(self.known, *word.released);
    return word.last;
}

// Whether another thread has loaded a word, with no order before this thread.
bool has_unordered(const Clock &loads, Clock &known) {
    for (size_t by = 0; by < loads.times.size(); by++) {
        if (by != current && time_of(known, by) < loads.times[by]) return true;
    }
    return false;
}

void store_word(uint64_t at, uint32_t value, Order order, Name name, bool is_whole) {
    Word &word = word_at(at);
    Clock &known = threads[current].known;
    bool is_plain = order == Order::plain;
    if (lacks_fence(word, name, known)) fail(NO_FENCE);
    if (is_whole) { // threads may share a word, and each write some of its bytes
        if (!is_ordered(word, known) && (is_plain || word.is_plain)) fail("a race: two stores");
        if (has_unordered(word.plain_loads, known) || (is_plain && has_unordered(word.other_loads, known)))
            fail("a race: a store and a load");
    }
    uint32_t before = word.last;
    word = Word{};
    word.before = before;
    word.last = value;
    word.writer = current;
    word.time = ++time_of(known, current);
    word.is_plain = is_plain;
    word.name = name;
    word.count = ++count;
    if (order == Order::release) word.released = std::make_shared<Clock>(known);
    std::memcpy(reinterpret_cast<void *>(at), &value, sizeof value);
}

} // namespace

void model_load(uint64_t at, unsigned bytes, Order order, Name name, void *value) {
    for (unsigned done = 0; done < bytes;) {
        uint64_t from = at + done, word = from & ~uint64_t(3);
        unsigned part = std::min(bytes - done, 4u);
        uint32_t loaded = load_word(word, order, name);
        std::memcpy(static_cast<char *>(value) + done, reinterpret_cast<char *>(&loaded) + (from - word),
                    part);
        done += part;
    }
}

void model_store(uint64_t at, unsigned bytes, Order order, Name name, const void *value) {
    for (unsigned done = 0; done < bytes;) {
        uint64_t to = at + done, word = to & ~uint64_t(3);
        unsigned part = std::min(bytes - done, 4u);
        uint32_t stored;
        std::memcpy(&stored, reinterpret_cast<const void *>(word), sizeof stored);
        std::memcpy(reinterpret_cast<char *>(&stored) + (to - word), static_cast<const char *>(value) + done,
                    part);
        store_word(word, stored, order, name, part == 4);
        done += part;
    }
}

void model_fence_of_aliases() {
    Thread &self = threads[current];
    self.fence_time = time_of(self.known, current);
    self.known.fence_count = ++count;
}

// ---- the engine's reports ---------------------------------------------------------------------------------

extern "C" {

// At the start of a run, when the program has other memory.
void *__tsan_get_current_fiber() {
    threads.assign(1, Thread{});
    spare.clear();
    words.clear();
    orders.clear();
    count = current = 0;
    random_state = 88172645463325252ull;
    return nullptr;
}

// A fiber is the number of a thread; 0: the host.
void *__tsan_create_fiber(unsigned) {
    if (spare.empty()) {
        spare.push_back(threads.size());
        threads.emplace_back();
    }
    size_t place = spare.back();
    spare.pop_back();
    Clock &known = threads[place].known;
    uint32_t time = time_of(known, place);
    known = Clock{};
    time_of(known, place) = time;
    return reinterpret_cast<void *>(place);
}

void __tsan_destroy_fiber(void *fiber) {
    spare.push_back(reinterpret_cast<size_t>(fiber));
}

void __tsan_switch_to_fiber(void *fiber, unsigned) {
    current = reinterpret_cast<size_t>(fiber);
}

void __tsan_release(void *order) {
    join(orders[order], threads[current].known);
}

void __tsan_acquire(void *order) {
    join(threads[current].known, orders[order]);
}
}
