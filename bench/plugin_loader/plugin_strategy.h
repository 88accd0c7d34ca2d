// Candidates of plug-ins as strategies (elements/strategy.h): their plans and calls.
#ifndef BENCH_PLUGIN_STRATEGY_H
#define BENCH_PLUGIN_STRATEGY_H

#include "elements/strategy.h"

extern const struct strategy strategy_plugin;

// Frees a plan that a strategy left in call.plan. False: the plug-in wrote beyond its workspace.
bool plugins_release(const struct candidate *candidate, void *plan);

#endif
