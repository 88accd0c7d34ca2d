// Makes a table from rows: chooses a strategy for every cell. See select.c for the rule.
#ifndef GENTABLES_CHOOSE_H
#define GENTABLES_CHOOSE_H

#include "select_options.h"

// The table with the winners of all cells, which the caller frees. NULL, with the problem, if a cell and
// strategy has two rows (unless selection->least is set), if there are too many cells, or if memory is short.
struct table *table_select(const struct rows *rows, const struct selection *selection,
                           const struct lists *lists, struct problem *problem);

#endif
