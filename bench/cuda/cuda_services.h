// What plug-ins get on a GPU; see cuda_services.h of the bench.
#ifndef BENCH_CUDA_SERVICES_H
#define BENCH_CUDA_SERVICES_H

#include "cuda_services.h"

extern const struct plugin_services cuda_plugin_services;

#endif
