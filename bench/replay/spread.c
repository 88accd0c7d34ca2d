// Loops over threads; see spread.h.
#include "spread.h"

#include <pthread.h>

enum { MOST_THREADS = 64 };

struct part {
    void (*work)(void *context, size_t from, size_t to);
    void *context;
    size_t from, to;
    pthread_t thread;
};

static void *run_part(void *argument) {
    const struct part *part = argument;
    part->work(part->context, part->from, part->to);
    return NULL;
}

void spread(int threads, size_t count, void (*work)(void *context, size_t from, size_t to), void *context) {
    struct part parts[MOST_THREADS];
    size_t most = (size_t)(threads < MOST_THREADS ? threads : MOST_THREADS), started = 1;
    if (most > count) most = count;
    if (most < 1) most = 1;
    for (size_t i = 0; i < most; i++) {
        parts[i] = (struct part){.work = work, .context = context};
        parts[i].from = count * i / most;
        parts[i].to = count * (i + 1) / most;
    }
    while (started < most && pthread_create(&parts[started].thread, NULL, run_part, &parts[started]) == 0)
        started++;
    run_part(&parts[0]);
    for (size_t i = started; i < most; i++) run_part(&parts[i]); // no thread could be had for these
    for (size_t i = 1; i < started; i++) pthread_join(parts[i].thread, NULL);
}
