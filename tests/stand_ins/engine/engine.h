// Runs kernels on a CPU: every CUDA thread is a fiber, all on one OS thread, switched at random from a seed,
// so that a failing seed can be run again. Knows ranks, launches one after the other on each (with
// programmatic launch: the next may start when all blocks let it), blocks that wait for room, barriers of
// clusters, blocks and warps. A run may stand still for ranks that another process runs: it then goes on when
// asked to.
#ifndef TESTS_CUDA_ENGINE_H
#define TESTS_CUDA_ENGINE_H

#include <cstdint>
#include <functional>

struct EngineLaunch {
    unsigned grid, block; // block: a multiple of 32
    unsigned cluster = 1; // blocks that share a barrier and reach each other's shared memory; divides `grid`
};

struct EngineRun {
    int ranks, launches;
    uint64_t seed;
    bool programmatic;       // launches may start before the one before has ended
    unsigned resident;       // blocks that a rank's GPU holds at once; 0: any number
    bool one_gpu;            // all ranks share it, and `resident` counts for all together
    bool preempts;           // threads switch between any two accesses, else only where they wait
    bool stalls;             // now and then a rank stands still until no other can go on without it
    bool has_others = false; // ranks elsewhere share the memory: who only waits may wait for them
    std::function<EngineLaunch(int rank, int launch)> shape;
    std::function<void(int rank, int launch)> body; // one thread's work
};

enum class EngineEnd { done, deadlock, waiting };

struct EngineResult {
    EngineEnd end;
    uint64_t switches;
};

// Runs all launches to their end; where the run has others, until all that is left waits: then engine_go_on
// does more of it, as often as that is so. One run is under way at a time; another one ends it where it is.
EngineResult engine_run(const EngineRun &run);
EngineResult engine_go_on();

#endif
