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
    int recorded = 0, reached = 0; // how often; it is done when all are
    double at_ms = 0;
};

struct Op {
    std::function<void()> run;      // alone
    Event *awaits = nullptr;        // not before this one is there,
    int awaited = 0;                // recorded so often
    const uint32_t *flag = nullptr; // or not before this one is `least`
    uint32_t least = 0;
    void (*kernel)(const void *) = nullptr;   // or a kernel,
    std::shared_ptr<std::vector<char>> bytes; // with its parameters
    unsigned blocks = 1, ranks = 1, threads = 1, cluster = 1;
    bool is_programmatic = false; // it may start while the launch ahead is still there,
    unsigned ahead = 0;           // which has so many blocks
    int meets = 0;                // how many launches, one of each stream, have to meet; 0: it runs alone
    void (*together)(void **arguments, int count) = nullptr; // once for all of them, in place of a kernel
    int (*attempt)(void *argument) = nullptr;                // or what is tried until it is done
    void *argument = nullptr;
    unsigned long long from_ns = 0; // when it was first tried
    unsigned correlation = 0;       // of a launch that somebody watches
    int gpu = 0;
    bool hangs = false; // it never ends, as a setting demands
};

struct Stream {
    int gpu = 0;
    std::deque<Op> queue;
    std::vector<Op> *capture = nullptr;
    pthread_t capturing = {}; // the thread
    bool is_invalid = false;  // the capture
    unsigned last_blocks = 0; // of the launch that was enqueued last; 0: something else was
};

// All of these are changed under `lock`.
extern std::vector<Stream *> streams;
extern std::set<const std::vector<Op> *> graphs; // ready to be launched
extern bool is_broken;                           // for good, by a kernel

// Runs whatever can run; under `lock`.
void pump();

// Waits for a moment, or until something has run; with `lock` held by `guard`, which it lets go meanwhile. A
// caller that only polls would keep its core from the ranks that it waits for.
void wait_a_moment(std::unique_lock<std::mutex> &guard);

// Puts an operation into a stream, or into its capture.
CUresult enqueue_op(CUstream stream, Op op);

unsigned long long now_ns();

} // namespace stand_in

#endif
