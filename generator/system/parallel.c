// Work on several threads; see parallel.h.
#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 8 };

struct work {
    size_t count;
    atomic_size_t next;
    void (*task)(void *context, size_t index);
    void *context;
};

static void *work_on(void *argument) {
    struct work *work = argument;
    for (;;) {
        size_t index = atomic_fetch_add(&work->next, 1);
        if (index >= work->count) return NULL;
        work->task(work->context, index);
    }
}

void parallel_run(size_t count, size_t threads, void (*task)(void *context, size_t index), void *context) {
    struct work work = {.count = count, .task = task, .context = context};
    atomic_init(&work.next, 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < 1) cores = 1;
    if (threads > (size_t)cores) threads = (size_t)cores;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    pthread_t thread[MAX_THREADS];
    size_t started = 0;
    while (started + 1 < threads && pthread_create(&thread[started], NULL, work_on, &work) == 0) started++;
    work_on(&work);
    for (size_t i = 0; i < started; i++) pthread_join(thread[i], NULL);
}
