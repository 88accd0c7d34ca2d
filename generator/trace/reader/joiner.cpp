// Parts have their own numbers for texts, argument sets, collectives and tracks; each is looked up once for
// each part that has it, and the events get the new numbers.
#include "joiner.h"

#include <algorithm>
#include <unordered_map>

namespace trace {

// Reserves room for all events of the file, estimated from the part that is read: vectors that double need
// three times their size while they grow.
void joiner::reserve(size_t count) {
    size_t needed = to_.events.size() + count;
    if (needed <= to_.events.capacity()) return;
    double expected = double(needed) / std::max(input_.share_read(), 0.01) * 1.05;
    to_.events.reserve(std::max(needed, std::min(size_t(expected), needed * 4)));
}

void joiner::map_texts(const part &part) {
    texts_.resize(part.names.size());
    for (uint32_t i = 0; i < texts_.size(); i++) texts_[i] = to_.names.intern(part.names[i]);
}

void joiner::join_rows(const part &part) {
    sets_.clear();
    for (argument_set row : part.argument_sets.rows()) {
        for (uint32_t *text : {&row.dims, &row.types, &row.strides, &row.concrete}) *text = texts_[*text];
        sets_.push_back(argument_sets_.number_of(row));
    }
    comms_.clear();
    for (collective row : part.collectives.rows()) {
        for (uint32_t *text :
             {&row.name, &row.dtype, &row.group, &row.ranks, &row.in_split, &row.out_split}) {
            *text = texts_[*text];
        }
        comms_.push_back(collectives_.number_of(row));
    }
    tracks_.clear();
    for (const track_key &row : part.tracks.rows()) {
        tracks_.push_back(all_track_keys_.number_of({texts_[row.pid], texts_[row.tid]}));
    }
}

void joiner::join_extras(const part &part) {
    auto before = uint32_t(to_.events.size());
    for (const announcement &from : part.announced) {
        to_.announced.push_back({before + from.event, comms_[from.collective]});
    }
    for (const event_size &from : part.sizes) to_.sizes.push_back({from.bytes, before + from.event});
    for (const launched_kernel &from : part.launched) {
        to_.launched.push_back({before + from.event, texts_[from.name]});
    }
    for (const flow &from : part.flows) {
        to_.flows.push_back({from.id, tracks_[from.track], from.is_finish});
    }
    for (const naming &from : part.namings) {
        namings_.push_back({tracks_[from.track], texts_[from.text], from.label});
    }
}

void joiner::join_flaws(const part &part) {
    for (size_t i = 0; i < part.flaws.size(); i++) {
        if (part.flaws[i] > 0 && to_.flaws[i] == 0) to_.first_flaw[i] = part.first_flaw[i];
        to_.flaws[i] += part.flaws[i];
    }
}

void joiner::join_event(event from) {
    from.uid += uint32_t(to_.events_in_file);
    from.name = texts_[from.name];
    from.track = tracks_[from.track];
    if (from.arguments != NONE) {
        from.arguments = from.kind == kind::cpu_op ? sets_[from.arguments] : comms_[from.arguments];
    }
    to_.events.push_back(from);
}

void joiner::name_tracks() {
    const uint32_t unknown = to_.names.intern("Unknown"), zero = to_.names.intern("0");
    for (const track_key &row : all_track_keys_.rows()) {
        to_.tracks.push_back({row.pid, row.tid, unknown, unknown, unknown});
    }
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> processes; // pid -> name, label
    for (const naming &naming : namings_) {
        track &track = to_.tracks[naming.track];
        if (naming.label == label::thread_name) track.thread_name = naming.text;
        if (naming.label == label::thread_name || track.tid != zero) continue;
        auto &process = processes.try_emplace(track.pid, unknown, unknown).first->second;
        (naming.label == label::process_name ? process.first : process.second) = naming.text;
    }
    for (track &track : to_.tracks) {
        auto found = processes.find(track.pid);
        if (found == processes.end()) continue;
        track.process_name = found->second.first;
        track.process_label = found->second.second;
    }
}

void joiner::join(const part &part) {
    map_texts(part);
    join_rows(part);
    join_extras(part);
    join_flaws(part);
    reserve(part.events.size());
    for (const event &from : part.events) join_event(from);
    to_.events_in_file += part.events_in_chunk;
}

void joiner::finish() {
    to_.argument_sets = argument_sets_.take();
    to_.collectives = collectives_.take();
    name_tracks();
}

} // namespace trace
