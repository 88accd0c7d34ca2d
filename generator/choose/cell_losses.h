// What the strategies of a plane lose in the bins of its cells.
#ifndef GENTABLES_CELL_LOSSES_H
#define GENTABLES_CELL_LOSSES_H

#include "estimate/evidence.h"
#include "planes.h"

// The losses of each strategy of the plane in the bin of a cell, into losses[strategy_count]: those that the
// launches show; where there is no evidence (NULL, or none of this fusion), those of the levels alone.
// Returns false if memory is short.
bool cell_losses(const struct plane *plane, const struct evidence *evidence, size_t hidden, size_t tokens,
                 struct loss *losses);

#endif
