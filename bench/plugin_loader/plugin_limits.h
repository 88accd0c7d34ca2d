// Which calls a candidate of a plug-in supports, by what it declares.
#ifndef BENCH_PLUGIN_LIMITS_H
#define BENCH_PLUGIN_LIMITS_H

#include "elements/strategy.h"
#include "ranks/group.h"

// Why a candidate of a plug-in cannot do this call, or NULL. The same on all ranks.
const char *plugins_refusal(const struct candidate *candidate, const struct group *group,
                            const struct call *call);

// Why a candidate is not called out of place (with `in_place`: in place), or NULL.
const char *plugins_place_refusal(const struct candidate *candidate, const struct group *group,
                                  const struct call *call, bool in_place);

// Whether it is timed in place, because it does not work out of place; and the value of the rows' field
// `place`, "in" or "out", NULL for candidates that are no plug-in's.
bool plugins_is_in_place(const struct candidate *candidate);
const char *plugins_place(const struct candidate *candidate);

// The alignment that its buffers need, in bytes.
size_t plugins_alignment(const struct candidate *candidate);

#endif
