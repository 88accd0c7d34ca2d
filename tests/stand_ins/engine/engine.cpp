// The fibers behind engine.h.
//
// Compiled without sanitizers, but reports to those of the program. For ThreadSanitizer each fiber is a
// thread, and only barriers and the ends of launches order threads. So nothing here may allocate while a
// fiber runs, and only the first fiber makes and ends fibers, because making one orders the maker before it.
// AddressSanitizer gets the bounds of the stack at each switch.
#include "engine_parts.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace engine;

namespace {

constexpr size_t STACK_BYTES = 128 << 10;
constexpr unsigned SWITCH_ONE_IN = 4, STALL_ONE_IN = 4096, POLL_ONE_IN = 8, PICKS = 16, NOBODY = ~0u;

EngineRun kept;
const EngineRun *run = &kept;
std::vector<std::vector<Launch>> launches; // [rank][launch]
std::vector<Gpu> gpus;
std::vector<Fiber *> ready;
std::vector<Fiber *> polling; // ready too, but their last poll found nothing
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber *> spare; // fibers of ended threads
std::vector<char *> spare_stacks;
std::vector<Fiber *> ended; // to be taken down by the first fiber
Fiber first_fiber;
Fiber *current, *left; // left: the one before the last switch
uint64_t random_state, switches, idle;
unsigned stalled; // the stalled rank, or NOBODY
size_t live;
bool deadlock, admission_due, pause_due;

uint64_t next_random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// A number below `limit`, which is at most 2^32.
size_t random_below(size_t limit) {
    return size_t((next_random() >> 32) * limit >> 32);
}

void give_stack(Fiber *fiber);

void go(Fiber *to, bool for_good = false) {
    Fiber *from = current;
    if (to == from) return;
    if (to->stack == nullptr && to != &first_fiber) give_stack(to);
    current = to;
    left = from;
    switches++;
    leave(&from->sanitized, to->sanitized, for_good);
    switch_context(&from->context, &to->context);
    arrive(current->sanitized, &left->sanitized);
}

// Stalls a rank, or ends that when all others only wait.
void stall_or_go_on() {
    if (stalled == NOBODY && next_random() % STALL_ONE_IN == 0) {
        stalled = static_cast<unsigned>(next_random() % static_cast<unsigned>(run->ranks));
    } else if (idle > 4 * live + 100) {
        stalled = NOBODY;
    }
}

// Fibers that poll get a small share of the switches while others have work.
std::vector<Fiber *> &pick_list() {
    if (polling.empty()) return ready;
    return ready.empty() || next_random() % POLL_ONE_IN == 0 ? polling : ready;
}

Fiber *pick() {
    if (run->stalls) stall_or_go_on();
    std::vector<Fiber *> *list = &pick_list();
    size_t place = random_below(list->size());
    for (unsigned i = 0; i < PICKS && stalled != NOBODY && (*list)[place]->self.rank == stalled; i++) {
        list = &pick_list();
        place = random_below(list->size());
    }
    Fiber *fiber = (*list)[place];
    (*list)[place] = list->back();
    list->pop_back();
    return fiber;
}

bool none_can_run() {
    return ready.empty() && polling.empty();
}

// Switches to another fiber; to the first fiber if blocks must be admitted or the run must pause.
void go_on() {
    if (admission_due || pause_due || none_can_run()) {
        go(&first_fiber);
    } else {
        go(pick());
    }
}

// Ends the program as after a failed test, unless a rule of the GPU is kept.
void must(bool is_kept, const char *broken) {
    if (is_kept) return;
    std::printf("FAILED: %s\n", broken);
    std::fflush(stdout);
    std::_Exit(1);
}

void yield() {
    ready.push_back(current);
    go_on();
}

void progress() {
    idle = 0;
}

void wake(std::vector<Fiber *> &waiting) {
    for (Fiber *fiber : waiting) ready.push_back(fiber);
    waiting.clear();
    progress();
}

void arrive(Barrier &barrier, unsigned generation, bool orders_memory) {
    if (orders_memory) release(&barrier.order[generation % 2]);
    if (++barrier.arrived != barrier.expected) return;
    barrier.arrived = 0;
    barrier.generation++;
    wake(barrier.waiting);
}

// Waits until all threads of this generation of the barrier have arrived.
void wait_for_all(Barrier &barrier, unsigned generation, bool orders_memory) {
    if (barrier.generation == generation) {
        barrier.waiting.push_back(current);
        go_on();
    }
    if (orders_memory) acquire(&barrier.order[generation % 2]);
}

void meet(Barrier &barrier, bool orders_memory) {
    unsigned generation = barrier.generation;
    arrive(barrier, generation, orders_memory);
    wait_for_all(barrier, generation, orders_memory);
}

Launch &launch_of(const Fiber *fiber) {
    return launches[fiber->self.rank][static_cast<size_t>(fiber->launch)];
}

Gpu &gpu_of(unsigned rank) {
    return gpus[run->one_gpu ? 0 : rank];
}

// ---- stacks -----------------------------------------------------------------------------------

char *make_stack() {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stack == MAP_FAILED) {
        std::perror("engine: a stack");
        std::exit(2);
    }
    return static_cast<char *>(stack);
}

void fiber_main();

// The first switch to the fiber calls fiber_main.
void give_stack(Fiber *fiber) {
    if (spare_stacks.empty()) spare_stacks.push_back(make_stack());
    fiber->stack = spare_stacks.back();
    spare_stacks.pop_back();
    set_bounds(&fiber->sanitized, fiber->stack, STACK_BYTES);
    start_context(&fiber->context, fiber->stack, STACK_BYTES, fiber_main);
}

// ---- one thread -------------------------------------------------------------------------------

void end_thread() {
    Launch &launch = launch_of(current);
    release(&launch.order);
    progress();
    if (--current->block->running == 0) {
        launch.ended++;
        gpu_of(current->self.rank).resident--;
        if (launch.complete()) wake(launch.waiting_for_end);
        admission_due = true;
    }
    live--;
    ended.push_back(current);
}

// After the end of the current thread: if the next one has not started, it takes over the stack, which saves
// a switch, and this returns; else this does not return.
void pass_on() {
    bool has_next = !admission_due && !pause_due && !none_can_run();
    Fiber *next = has_next ? pick() : &first_fiber;
    if (!has_next || next->stack != nullptr) {
        go(next, true);
        abort(); // an ended fiber runs no more
    }
    next->stack = current->stack;
    current->stack = nullptr;
    set_bounds(&next->sanitized, next->stack, STACK_BYTES);
    current = next;
    switches++;
}

void fiber_main() {
    arrive(current->sanitized, &left->sanitized);
    for (;;) {
        if (!run->programmatic && current->launch > 0) {
            acquire(&launches[current->self.rank][static_cast<size_t>(current->launch) - 1].order);
        }
        run->body(static_cast<int>(current->self.rank), current->launch);
        end_thread();
        pass_on();
    }
}

// ---- admission, by the first fiber --------------------------------------------------------------

void set_expected(Barrier &barrier, unsigned expected) {
    barrier.expected = expected;
    barrier.waiting.reserve(expected);
}

std::unique_ptr<Block> make_block(unsigned threads) {
    std::unique_ptr<Block> block(new Block); // without zeros in its arena
    set_expected(block->barrier, threads);
    block->warps = std::vector<Warp>(threads / WARP);
    for (Warp &warp : block->warps) set_expected(warp.barrier, WARP);
    std::memset(block->shared, 0, sizeof block->shared);
    std::memset(block->arena, 0xff, sizeof block->arena); // NaN: shared memory has no initial value
    block->shared_used = 0;
    block->running = threads;
    block->let_next_start = 0;
    return block;
}

Fiber *make_fiber() {
    if (spare.empty()) {
        fibers.push_back(std::make_unique<Fiber>());
        spare.push_back(fibers.back().get());
    }
    Fiber *fiber = spare.back();
    spare.pop_back();
    return fiber;
}

// The next fiber gets the stack that was used last, because its lines are still in a cache.
void take_down(Fiber *fiber) {
    if (destroy(fiber->sanitized)) {
        // ThreadSanitizer would take the next fiber's use of the same memory for a race.
        munmap(fiber->stack, STACK_BYTES);
    } else if (fiber->stack != nullptr) {
        spare_stacks.push_back(fiber->stack);
    }
    fiber->stack = nullptr;
    spare.push_back(fiber);
}

void start_thread(unsigned rank, int launch, unsigned block, unsigned thread) {
    Launch &of = launches[rank][static_cast<size_t>(launch)];
    Fiber *fiber = make_fiber();
    fiber->self = {rank, block, thread, of.shape.block, of.shape.grid, of.shape.cluster, !run->must_wait};
    fiber->launch = launch;
    fiber->block = of.blocks[block].get();
    fiber->cluster_arrivals = fiber->cluster_waits = 0;
    if (create(&fiber->sanitized)) give_stack(fiber);
    live++;
    ready.push_back(fiber);
}

bool may_start(unsigned rank, size_t number) {
    if (number == 0) return true;
    const Launch &before = launches[rank][number - 1];
    if (!run->programmatic) return before.complete();
    return before.admitted == before.shape.grid && before.let_next_start == before.shape.grid;
}

// The next blocks of a launch, which form a cluster.
void start_cluster(unsigned rank, size_t number) {
    Launch &launch = launches[rank][number];
    const EngineLaunch &shape = launch.shape;
    launch.clusters.push_back(std::make_unique<Cluster>());
    Cluster *cluster = launch.clusters.back().get();
    set_expected(cluster->barrier, shape.cluster * shape.block);
    for (unsigned i = 0; i < shape.cluster; i++) {
        unsigned block = launch.admitted++;
        gpu_of(rank).resident++;
        launch.blocks[block] = make_block(shape.block);
        launch.blocks[block]->cluster = cluster;
        cluster->blocks.push_back(launch.blocks[block].get());
    }
    for (unsigned block = launch.admitted - shape.cluster; block < launch.admitted; block++) {
        for (unsigned thread = 0; thread < shape.block; thread++)
            start_thread(rank, static_cast<int>(number), block, thread);
    }
}

// Admits one cluster of a rank, if there is one and room for it.
bool admit_cluster(unsigned rank) {
    for (size_t number = 0; number < launches[rank].size(); number++) {
        Launch &launch = launches[rank][number];
        if (launch.admitted == launch.shape.grid) continue;
        unsigned resident = gpu_of(rank).resident + launch.shape.cluster;
        if (!may_start(rank, number) || (run->resident != 0 && resident > run->resident)) return false;
        start_cluster(rank, number);
        return true;
    }
    return false;
}

void take_down_ended() {
    for (Fiber *fiber : ended) take_down(fiber);
    ended.clear();
}

// Ranks take turns, so that ranks that share a GPU share its room.
void admit() {
    admission_due = false;
    unsigned refused = 0;
    for (unsigned rank = 0; refused < static_cast<unsigned>(run->ranks);
         rank = (rank + 1) % static_cast<unsigned>(run->ranks)) {
        refused = admit_cluster(rank) ? 0 : refused + 1;
    }
}

void prepare() {
    size_t threads = 0;
    launches.clear();
    for (int rank = 0; rank < run->ranks; rank++) {
        launches.emplace_back(static_cast<size_t>(run->launches));
        for (int number = 0; number < run->launches; number++) {
            Launch &launch = launches.back()[static_cast<size_t>(number)];
            launch.shape = run->shape(rank, number);
            launch.blocks.resize(launch.shape.grid);
            launch.clusters.reserve(launch.shape.grid / launch.shape.cluster);
            threads += static_cast<size_t>(launch.shape.grid) * launch.shape.block;
        }
    }
    for (auto &of_rank : launches) {
        for (Launch &launch : of_rank) launch.waiting_for_end.reserve(threads);
    }
    ready.clear();
    ready.reserve(threads + 1);
    polling.clear();
    polling.reserve(threads + 1);
    ended.clear();
    ended.reserve(threads);
    spare.reserve(threads);
    spare_stacks.reserve(threads);
    gpus.assign(static_cast<size_t>(run->ranks), Gpu{});
    random_state = run->seed * 0x9e3779b97f4a7c15ull + 1;
    switches = idle = 0;
    stalled = NOBODY;
    live = 0;
    deadlock = pause_due = false;
    admission_due = true;
}

// Abandons the threads, which wait forever.
void abandon() {
    for (auto &fiber : fibers) {
        bool is_spare = false;
        for (Fiber *other : spare) is_spare = is_spare || other == fiber.get();
        if (is_spare) continue;
        if (fiber->stack != nullptr) forget_frames(fiber->sanitized);
        take_down(fiber.get());
    }
}

} // namespace

extern "C" {

const EngineThread *engine_thread() {
    return &current->self;
}

void engine_block_barrier() {
    meet(current->block->barrier, true);
}

// A shuffle orders no memory.
float engine_shuffle_xor(float value, int mask) {
    Warp &warp = current->block->warps[current->self.thread / WARP];
    unsigned lane = current->self.thread % WARP;
    float *values = warp.values[warp.barrier.generation % 2];
    values[lane] = value;
    meet(warp.barrier, false);
    return values[lane ^ static_cast<unsigned>(mask)];
}

void *engine_shared_memory(int site, size_t bytes) {
    Block &block = *current->block;
    void *&memory = block.shared[site];
    if (memory == nullptr) {
        memory = block.arena + block.shared_used;
        block.shared_used += (bytes + 15) / 16 * 16;
        if (block.shared_used > SHARED_BYTES) abort();
    }
    return memory;
}

// A thread arrives and waits by turns (PTX: barrier.cluster).
void engine_cluster_arrive() {
    must(current->cluster_arrivals == current->cluster_waits, "a second arrival at a cluster's barrier");
    arrive(current->block->cluster->barrier, current->cluster_arrivals++, true);
}

void engine_cluster_wait() {
    unsigned generation = current->cluster_waits++;
    must(current->cluster_arrivals == current->cluster_waits, "a wait at a cluster's barrier, no arrival");
    wait_for_all(current->block->cluster->barrier, generation, true);
}

// The shared memory of a block exists only from its start, for which a thread waits at the cluster's barrier,
// to its end.
void *engine_shared_in_cluster(void *own, unsigned rank) {
    Block &mine = *current->block, &theirs = *mine.cluster->blocks[rank];
    must(&theirs == &mine || (current->cluster_waits > 0 && theirs.running > 0),
         "an access to shared memory of a block that does not run");
    return theirs.arena + (static_cast<char *>(own) - mine.arena);
}

void engine_step(int wrote) {
    must(current->self.may_access, "a programmatic launch: an access before the wait for the launch ahead");
    if (wrote != 0) progress();
    if (run->preempts && next_random() % SWITCH_ONE_IN == 0) yield();
}

bool engine_keep_waiting() {
    ++idle;
    if (run->has_others) {
        pause_due = idle > 4 * live;
    } else if (!deadlock && idle > 400 * live + 20000) {
        deadlock = true;
    }
    if (deadlock) return false;
    polling.push_back(current);
    go_on();
    return !deadlock;
}

void engine_wait_for_earlier_launches() {
    current->self.may_access = true;
    if (!run->programmatic || current->launch == 0) return;
    Launch &before = launches[current->self.rank][static_cast<size_t>(current->launch) - 1];
    if (!before.complete()) {
        before.waiting_for_end.push_back(current);
        go_on();
    }
    acquire(&before.order);
}

void engine_let_next_launch_start() {
    if (++current->block->let_next_start != current->self.block_size) return;
    Launch &launch = launch_of(current);
    if (++launch.let_next_start == launch.shape.grid) admission_due = true;
}
}

EngineResult engine_run(const EngineRun &asked) {
    kept = asked;
    prepare();
    return engine_go_on();
}

EngineResult engine_go_on() {
    current = &first_fiber;
    take_current(&first_fiber.sanitized);
    for (;;) {
        take_down_ended();
        if (admission_due) admit();
        if (live == 0) break;
        if (pause_due) {
            pause_due = false;
            idle = 0;
            return {EngineEnd::waiting, switches};
        }
        if (none_can_run()) { // all wait, in barriers or for launches
            deadlock = true;
            break;
        }
        go(pick());
    }
    if (live > 0) abandon();
    for (auto &of_rank : launches) {
        for (Launch &launch : of_rank) acquire(&launch.order);
    }
    return {deadlock ? EngineEnd::deadlock : EngineEnd::done, switches};
}
