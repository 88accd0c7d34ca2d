// The state of launches and of their clusters, blocks, warps and threads, for engine.cpp.
#ifndef TESTS_CUDA_ENGINE_PARTS_H
#define TESTS_CUDA_ENGINE_PARTS_H

#include "engine.h"
#include "engine_context.h"
#include "engine_sanitizers.h"

#include <cstddef>
#include <memory>
#include <vector>

struct EngineThread {
    unsigned rank, block, thread, block_size, grid_size, cluster_size;
    bool may_access;
};

namespace engine {

constexpr size_t SHARED_BYTES = 32 << 10;
constexpr unsigned WARP = 32, SITES = 64;

struct Fiber;

struct Barrier {
    unsigned expected = 0, arrived = 0, generation = 0;
    std::vector<Fiber *> waiting;
    char order[2]; // the addresses of the sanitizer's release and acquire
};

struct Warp {
    Barrier barrier;
    float values[2][WARP];
};

struct Block;

struct Cluster {
    Barrier barrier;
    std::vector<Block *> blocks;
};

struct Block {
    Barrier barrier;
    Cluster *cluster;
    std::vector<Warp> warps;
    void *shared[SITES];
    size_t shared_used;
    alignas(16) char arena[SHARED_BYTES];
    unsigned running, let_next_start;
};

struct Launch {
    EngineLaunch shape;
    unsigned admitted = 0, ended = 0, let_next_start = 0; // blocks
    std::vector<Fiber *> waiting_for_end;
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<std::unique_ptr<Cluster>> clusters;
    char order;
    bool complete() const { return ended == shape.grid; }
};

struct Fiber {
    Context context;
    char *stack = nullptr; // a fiber gets one when it first runs
    EngineThread self;
    int launch;
    Block *block;
    unsigned cluster_arrivals, cluster_waits; // at the barrier of its cluster
    SanitizedFiber sanitized;
};

struct Gpu {
    unsigned resident = 0;
};

} // namespace engine

#endif
