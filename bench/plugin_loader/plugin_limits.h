// Which calls a candidate of a plug-in does.
#ifndef BENCH_PLUGIN_LIMITS_H
#define BENCH_PLUGIN_LIMITS_H

#include "elements/strategy.h"
#include "ranks/group.h"

// Why a candidate of a plug-in cannot do this call, or NULL. Alike on all ranks.
const char *plugins_refusal(const struct candidate *candidate, const struct group *group,
                            const struct call *call);

// Why it is not called with input and output apart, or (`in_place`) in the same place; NULL: it is.
const char *plugins_place_refusal(const struct candidate *candidate, const struct group *group,
                                  const struct call *call, bool in_place);

// Whether it is timed in place: it works nowhere else. And that as a word of rows, "in" or "out"; NULL: it is
// one of ours.
bool plugins_is_in_place(const struct candidate *candidate);
const char *plugins_place(const struct candidate *candidate);

// How its buffers have to be aligned, at least, in bytes.
size_t plugins_alignment(const struct candidate *candidate);

#endif
