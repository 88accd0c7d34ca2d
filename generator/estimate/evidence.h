// Evidence of launches about the losses of strategies: a Gaussian process, fitted to the rows of a block (all
// fusions of a TP size, data type, op and mode).
//
// Rows without launches, such as those of other programs, give no evidence: their noise is unknown.
#ifndef GENTABLES_EVIDENCE_H
#define GENTABLES_EVIDENCE_H

#include "losses.h"
#include "rows/rows.h"

struct evidence;

// A shape as rows have it (HIDDEN_SIZE_NONE: by bytes alone), with log2 of both sizes, which may lie between
// those of rows, and its weight in a bin.
struct evidence_shape {
    uint8_t fusion;
    double log2_hidden_size, log2_num_tokens, weight;
};

// The rows from which evidence is made.
struct evidence_scope {
    struct slice_key block; // the rows of all its fusions
    const bool *may_win;    // by strategy
    bool keeps_far; // whether strategies that are slow everywhere stay, because the fast ones may not win
    uint8_t barred; // the placement of rows that do not count; NAME_NONE: none
    uint8_t oversubscribed; // the index of that name in the list of placements
};

// The evidence of the rows in this scope. *evidence is NULL if they have no launches. Returns false if memory
// is short. evidence_free frees it.
bool evidence_make(const struct rows *rows, const struct evidence_scope *scope, const struct lists *lists,
                   struct evidence **evidence);
void evidence_free(struct evidence *evidence);

// Whether a strategy has evidence (of NULL: none has). A strategy that is far from the fastest in all its
// cells has none, because its loss is certain without it.
bool evidence_covers(const struct evidence *evidence, uint8_t strategy);

// Whether a strategy has times and is left out because it is far from the fastest in all its cells. A
// strategy without any time is not left out: its level is that of the prior.
bool evidence_excludes(const struct evidence *evidence, uint8_t strategy);

// The figures of `count` strategies that are not excluded, of which at least one has evidence, over a bin of
// `shape_count` shapes, of a cell with the shape `own`. If there are more shapes than SHAPES_MAX
// (evidence.c), shapes close to each other are replaced by their mean. Returns false if memory is short.
bool evidence_losses(const struct evidence *evidence, const struct evidence_shape *own,
                     const struct evidence_shape *shapes, size_t shape_count, const uint8_t *strategies,
                     size_t count, struct loss_figures *figures);

#endif
