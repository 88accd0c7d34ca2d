// The events of one rank in the trace of all ranks: those of the kept categories, with the rank before their
// names, and with pids and ids that no other rank has. From text to text, a chunk at a time.
#ifndef GENTABLES_TRACE_MERGE_EVENTS_H
#define GENTABLES_TRACE_MERGE_EVENTS_H

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/reader/json_cursor.h"
#include "trace/reader/splitter.h"

namespace trace {

// A rank's identity in the merged trace.
struct merge_rank {
    int64_t rank;
    int id_digits;                 // number of the rank's digits at the end of every id
    int64_t shift_nanoseconds = 0; // added to every time
    // The GPUs' pids as written. If there are several, each has its own pid, in this order.
    std::vector<std::string> devices;

    int64_t gpu_pid(std::string_view device) const;
    int64_t cpu_pid() const { return rank * 1000 + 500; }
};

struct merge_track {
    bool is_gpu = false, is_cpu = false;
};

// An end of an arrow; its other end, or its process, is still unknown: its text is before, a pid, after.
struct open_flow {
    uint64_t key; // of the arrow
    bool is_finish;
    std::string track, before, after;
};

// A metadata event's facts about a thread: its name or its sort index.
struct merge_label {
    std::string track, name, arguments;
};

enum class merge_count { malformed, negative, long_ids, lone_flows, count };

// The result of a chunk.
struct merged_chunk {
    std::string text;                                    // each event after a comma and the end of a line
    std::unordered_map<std::string, merge_track> tracks; // by track_key
    std::set<std::string> devices;
    std::vector<open_flow> open_flows;
    std::vector<uint64_t> whole_flows; // keys of arrows with both ends
    std::vector<merge_label> labels;
    std::vector<uint64_t> kept; // events of each category
    uint64_t counts[size_t(merge_count::count)] = {};
    const char *damage = nullptr; // the reason why the chunk is not a list of events
    uint64_t damage_offset = 0;
};

class merge_events {
  public:
    explicit merge_events(const std::vector<std::string> &categories) : categories_(categories) {}

    // Fills `to`, reusing its memory. Throws bad_alloc.
    void take(chunk &chunk, const merge_rank &rank, merged_chunk &to);

    // Adds the text of an arrow's end.
    static void add_flow(std::string &to, const open_flow &flow, const merge_track &track,
                         const merge_rank &rank);

  private:
    struct fields;
    enum class outcome { taken, dropped, malformed };

    outcome take_event(json_cursor &cursor);
    bool read_fields(json_cursor &cursor, fields &of, bool &is_dropped);
    bool read_arguments(json_cursor &cursor);
    bool is_kept(std::string_view category);
    bool check(fields &of);
    void add_label(const fields &of);
    void add_event(const fields &of);
    void add_open_flow(const fields &of);
    void settle_flows();
    void add_id(std::string &to, std::string_view id);
    void add_head(std::string &to, const fields &of) const;
    void add_tail(std::string &to, const fields &of);
    merge_track &track_of(const fields &of);

    const std::vector<std::string> &categories_;
    const merge_rank *rank_ = nullptr;
    merged_chunk *to_ = nullptr;
    std::string arguments_, others_, track_; // of the current event
    std::string suffix_;                     // of ids
    size_t category_ = 0;
    merge_track *last_track_ = nullptr;
    std::string last_track_key_;
};

// Pid and tid, as texts without quotes, as one text; and the pid and the tid of it.
void set_track_key(std::string &key, std::string_view pid, std::string_view tid);
std::string_view pid_of_track(const std::string &key);
std::string_view tid_of_track(const std::string &key);

} // namespace trace

#endif
