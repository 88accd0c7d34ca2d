// Runs kernels on a CPU: every CUDA thread is a fiber, all on one OS thread, switched at random from a seed,
// so that a failing seed can be run again. Knows ranks, launches one after the other on each (with
// programmatic launch: the next may start when all blocks let it), blocks that wait for room, barriers of
// blocks and warps.
#ifndef TESTS_CUDA_ENGINE_H
#define TESTS_CUDA_ENGINE_H

#include <cstdint>
#include <functional>

struct EngineLaunch {
    unsigned grid, block; // block: a multiple of 32
};

struct EngineRun {
    int ranks, launches;
    uint64_t seed;
    bool programmatic; // launches may start before the one before has ended
    unsigned resident; // blocks that a rank's GPU holds at once; 0: any number
    bool one_gpu;      // all ranks share it, and `resident` counts for all together
    bool stalls;       // now and then a rank stands still until no other can go on without it
    std::function<EngineLaunch(int rank, int launch)> shape;
    std::function<void(int rank, int launch)> body; // one thread's work
};

enum class EngineEnd { done, deadlock };

struct EngineResult {
    EngineEnd end;
    uint64_t switches;
};

EngineResult engine_run(const EngineRun &run);

#endif
