// Losses of a plane's strategies in the bins of its cells.
#ifndef GENTABLES_CELL_LOSSES_H
#define GENTABLES_CELL_LOSSES_H

#include "estimate/evidence.h"
#include "planes.h"

// Computes losses[strategy_count], the loss of each strategy of the plane in the bin of a cell: from the
// evidence of launches or, without evidence (NULL, or none for a strategy), from the levels alone. Returns
// false if memory is short.
bool cell_losses(const struct plane *plane, const struct evidence *evidence, size_t hidden, size_t tokens,
                 struct loss *losses);

#endif
