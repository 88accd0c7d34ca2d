// The streams of the stand-in for libcuda.so.1: queues of operations, which queues.cpp runs. streams.cpp has
// the driver's calls on streams, events and graphs.
#ifndef TESTS_STAND_INS_QUEUES_H
#define TESTS_STAND_INS_QUEUES_H

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <pthread.h>
#include <set>
#include <vector>

#include "driver.h"

namespace stand_in {

constexpr int OF_EACH = 2, MULTIPROCESSORS = 8; // blocks that a multiprocessor holds at once

struct Event {
    int gpu = 0;
    bool has_time = true;
    int recorded = 0, reached = 0; // numbers of its records, enqueued and run; it is done if they are equal
    double at_ms = 0, lag_ms = 0;  // the time of the last record, and the lag of its stream
};

struct Op {
    std::function<void()> run;      // a function,
    Event *awaits = nullptr;        // or a wait for this event,
    int awaited = 0;                // until it was reached so often,
    const uint32_t *flag = nullptr; // or a wait until this value is at least `least`
    uint32_t least = 0;
    void (*kernel)(const void *) = nullptr;   // or a kernel,
    std::shared_ptr<std::vector<char>> bytes; // with its parameters
    unsigned blocks = 1, ranks = 1, threads = 1, cluster = 1;
    bool is_programmatic = false; // it may start while the launch ahead still runs,
    unsigned ahead = 0;           // which has this number of blocks
    int meets = 0; // number of launches, one of each rank's stream, that run together; 0: it runs alone
    void (*together)(void **arguments, int count) = nullptr; // or called once for all that run together,
    int (*attempt)(void *argument) = nullptr;                // or called again until it returns true
    void *argument = nullptr;
    unsigned long long from_ns = 0; // the time of the first attempt
    unsigned correlation = 0;       // the launch's number for the stand-in of CUPTI; 0: none
    int gpu = 0;
    bool hangs = false; // it never ends, as a setting demands
};

struct Stream {
    int gpu = 0;
    std::deque<Op> queue;
    std::vector<Op> *capture = nullptr;
    pthread_t capturing = {}; // the thread of the capture
    bool is_invalid = false;  // whether the capture is
    unsigned last_blocks = 0; // of the operation that was enqueued last, if it was a launch; else 0
    double lag_ms = 0;        // added to the clock; streams that meet get the largest
};

// All of these are guarded by `lock`.
extern std::vector<Stream *> streams;
extern std::set<const std::vector<Op> *> graphs; // the instantiated ones
extern bool is_broken;                           // permanently, by a kernel

// Runs all operations that can run. The caller holds `lock`.
void pump();

// Waits for a moment, or until an operation has run. `guard` holds `lock`, and releases it meanwhile. A
// caller that only polls would keep its core from the ranks that it waits for.
void wait_a_moment(std::unique_lock<std::mutex> &guard);

// Appends an operation to a stream, or to its capture.
CUresult enqueue_op(CUstream stream, Op op);

unsigned long long now_ns();

} // namespace stand_in

#endif
