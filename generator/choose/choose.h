// Makes a table from rows: chooses a strategy for every cell. See select.c for the rule.
#ifndef GENTABLES_CHOOSE_H
#define GENTABLES_CHOOSE_H

#include "select_options.h"

// The winners of all cells. NULL if a cell and strategy has two rows (unless `least` is set), or if there are
// too many cells. The caller frees it.
struct table *table_select(const struct rows *rows, const struct selection *selection,
                           const struct lists *lists, struct problem *problem);

#endif
