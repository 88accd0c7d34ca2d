// Loops over threads; see parallel_for.h.
#include "parallel_for.h"

#include <pthread.h>
#include <stdatomic.h>

// Pieces for each thread. A thread that shares its core, for example with a library's spinning thread, does
// fewer of them.
enum { MOST_THREADS = 64, PIECES_OF_A_THREAD = 8 };

struct loop {
    void (*work)(void *context, size_t from, size_t to);
    void *context;
    size_t count, pieces;
    atomic_size_t next;
};

static void *run_pieces(void *argument) {
    struct loop *loop = argument;
    for (size_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->pieces;)
        loop->work(loop->context, loop->count * i / loop->pieces, loop->count * (i + 1) / loop->pieces);
    return NULL;
}

void parallel_for(int threads, size_t count, void (*work)(void *context, size_t from, size_t to),
                  void *context) {
    pthread_t others[MOST_THREADS];
    size_t most = (size_t)(threads < MOST_THREADS ? threads : MOST_THREADS), started = 1;
    if (most > count) most = count;
    size_t pieces = most <= 1 ? 1 : most * PIECES_OF_A_THREAD;
    struct loop loop = {.work = work, .context = context, .count = count};
    loop.pieces = pieces < count ? pieces : count;
    while (started < most && pthread_create(&others[started], NULL, run_pieces, &loop) == 0) started++;
    run_pieces(&loop);
    for (size_t i = 1; i < started; i++) pthread_join(others[i], NULL);
}
