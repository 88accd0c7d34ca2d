// Services for plug-ins on a GPU; see calls/plugin_services.h.
#ifndef BENCH_CUDA_SERVICES_H
#define BENCH_CUDA_SERVICES_H

#include "calls/plugin_services.h"

extern const struct plugin_services cuda_plugin_services;

#endif
