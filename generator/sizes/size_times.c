// The times of a slice by shape; see size_times.h.
//
// Files have the times of a shape one after the other, so that these runs are sorted, not the times.
#include "size_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Neighbours of one shape: times[first .. end - 1].
struct run {
    uint64_t size_bytes;
    int64_t tokens_and_hidden;
    size_t first, end;
};

static struct run run_from(const struct size_time *time, size_t first) {
    int64_t shape = (int64_t)((uint64_t)time->num_tokens << 32 | time->hidden_size);
    return (struct run){time->size_bytes, shape, first, first + 1};
}

static bool is_same_shape(const struct run *a, const struct run *b) {
    return a->size_bytes == b->size_bytes && a->tokens_and_hidden == b->tokens_and_hidden;
}

static size_t find_runs(const struct size_time *times, size_t count, struct run *runs) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct run own = run_from(&times[i], i);
        if (found > 0 && is_same_shape(&runs[found - 1], &own)) {
            runs[found - 1].end = i + 1;
        } else {
            runs[found++] = own;
        }
    }
    return found;
}

static int by_shape(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? -1 : 1;
    if (x->tokens_and_hidden != y->tokens_and_hidden)
        return x->tokens_and_hidden < y->tokens_and_hidden ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

// Makes the columns of the strategies that have a time.
static void find_columns(const struct size_time *times, size_t count, struct size_times *made,
                         uint8_t column_of[NAMES_MAX]) {
    bool has_time[NAMES_MAX] = {false};
    for (size_t i = 0; i < count; i++) has_time[times[i].strategy] = true;
    for (size_t s = 0; s < NAMES_MAX; s++) {
        if (!has_time[s]) continue;
        column_of[s] = (uint8_t)made->width;
        made->strategies[made->width++] = (uint8_t)s;
    }
}

static bool allocate(struct size_times *made, size_t shapes) {
    size_t places = shapes * made->width;
    made->shape = malloc((shapes + 1) * sizeof *made->shape);
    made->time_us = malloc((places + 1) * sizeof *made->time_us);
    made->is_measured = calloc(places + 1, sizeof *made->is_measured);
    if (made->shape == NULL || made->time_us == NULL || made->is_measured == NULL) return false;
    for (size_t i = 0; i < places; i++) made->time_us[i] = NAN;
    return true;
}

// Enters the times of a run into the last shape.
static void enter_run(struct size_times *made, const struct size_time *times, const struct run *run,
                      const uint8_t column_of[NAMES_MAX]) {
    size_t row = (made->count - 1) * made->width;
    for (size_t i = run->first; i < run->end; i++) {
        size_t place = row + column_of[times[i].strategy];
        made->time_us[place] = times[i].time_us;
        made->is_measured[place] |= times[i].is_measured;
    }
}

bool size_times_make(const struct size_time *times, size_t count, struct size_times *made) {
    uint8_t column_of[NAMES_MAX];
    *made = (struct size_times){.count = 0};
    struct run *runs = malloc((count + 1) * sizeof *runs);
    if (runs == NULL) return false;
    size_t run_count = find_runs(times, count, runs);
    qsort(runs, run_count, sizeof *runs, by_shape);
    find_columns(times, count, made, column_of);
    bool ok = allocate(made, run_count);
    for (size_t i = 0; ok && i < run_count; i++) {
        const struct size_time *time = &times[runs[i].first];
        if (i == 0 || !is_same_shape(&runs[i - 1], &runs[i])) {
            made->shape[made->count++] =
                (struct size_shape){time->size_bytes, time->num_tokens, time->hidden_size};
        }
        enter_run(made, times, &runs[i], column_of);
    }
    free(runs);
    return ok;
}

void size_times_free(struct size_times *times) {
    free(times->shape);
    free(times->time_us);
    free(times->is_measured);
}
