// Runs kernels on a CPU: every CUDA thread is a fiber, all on one OS thread, switched at random from a seed,
// so that a failing seed can be run again. It models ranks with consecutive launches (with programmatic
// launch, the next one may start when all blocks permit that), blocks that wait for room, and barriers of
// clusters, blocks and warps. If threads wait for ranks in other processes, the run pauses until
// engine_go_on.
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
    bool programmatic;       // a launch may start before the previous one has ended
    unsigned resident;       // blocks that a rank's GPU holds at once; 0: any number
    bool one_gpu;            // all ranks share it, and `resident` counts for all together
    bool preempts;           // threads switch between any two accesses, else only where they wait
    bool stalls;             // now and then a rank stalls until no other can continue without it
    bool must_wait = false;  // threads must wait for earlier launches before they access memory
    bool has_others = false; // ranks in other processes share the memory, and threads may wait for them
    std::function<EngineLaunch(int rank, int launch)> shape;
    std::function<void(int rank, int launch)> body; // one thread's work
};

enum class EngineEnd { done, deadlock, waiting };

struct EngineResult {
    EngineEnd end;
    uint64_t switches;
};

// Runs all launches to their end. With has_others, the result is `waiting` whenever all threads wait;
// engine_go_on then continues the run. There is one run at a time: engine_run abandons an unfinished one.
EngineResult engine_run(const EngineRun &run);
EngineResult engine_go_on();

#endif
