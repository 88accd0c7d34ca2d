// A part of a trace: the events of one chunk. Its numbers (of texts, argument sets, collectives, tracks,
// events) are its own; reader.cpp joins the parts in order of the file.
#ifndef GENTABLES_TRACE_PART_H
#define GENTABLES_TRACE_PART_H

#include <memory>

#include "distinct.h"
#include "splitter.h"
#include "trace.h"

namespace trace {

// A pid and tid: texts, as written, without quotes.
struct track_key {
    uint32_t pid, tid;
};

// The names of a track, from metadata events.
enum class label : uint32_t { process_name, process_label, thread_name };
struct naming {
    uint32_t track, text;
    ::trace::label label;
};

// The reason why a chunk is not a list of events: a static text, and the position in the unpacked file.
struct damage {
    const char *what = nullptr;
    uint64_t offset = 0;
};

class part {
  public:
    part();
    ~part();

    // Reads the events of `chunk`, after mending its text if necessary. Discards the previous events. Returns
    // whether the chunk is JSON; if not, `damage` has the reason. Throws bad_alloc.
    bool take(chunk &chunk);

    texts names;
    distinct<argument_set> argument_sets;
    distinct<collective> collectives;
    distinct<track_key> tracks;
    std::vector<event> events; // track is one of `tracks`, uid counted from the first event of the part
    std::vector<flow> flows;   // likewise
    std::vector<event_size> sizes;
    std::vector<announcement> announced;
    std::vector<naming> namings;
    std::vector<launched_kernel> launched;
    bool keeps_frames = false, keeps_launched = false; // read_options
    std::array<uint64_t, size_t(flaw::count)> flaws;
    std::array<uint64_t, size_t(flaw::count)> first_flaw;
    uint32_t events_in_chunk;
    ::trace::damage damage;

  private:
    struct reading;
    std::unique_ptr<reading> reading_;
};

} // namespace trace

#endif
