// Joins the parts of a trace, in order of the file: their numbers become those of the trace.
#ifndef GENTABLES_TRACE_JOINER_H
#define GENTABLES_TRACE_JOINER_H

#include "part.h"

namespace trace {

class joiner {
  public:
    joiner(trace &trace, const input &input) : to_(trace), input_(input) {}

    // Adds the next part of the file. Throws bad_alloc.
    void join(const part &part);
    // Call after all parts are joined. Throws bad_alloc.
    void finish();

  private:
    void reserve(size_t count);
    void map_texts(const part &part);
    void join_rows(const part &part);
    void join_extras(const part &part);
    void join_flaws(const part &part);
    void join_event(event from);
    void name_tracks();

    trace &to_;
    const input &input_;
    distinct<argument_set> argument_sets_;
    distinct<collective> collectives_;
    distinct<track_key> all_track_keys_;
    std::vector<naming> namings_;
    std::vector<uint32_t> texts_, sets_, comms_, tracks_; // of the part being joined: its number -> ours
};

} // namespace trace

#endif
