// The time that a thread has had; see waited_time.h.
#include "waited_time.h"

#include <stdio.h>

enum { MOST_OF_AN_UPDATE_NS = 2 * WAITED_TIME_UPDATE_NS };

void waited_time_begin(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns) {
    *waited = (struct waited_time){.updated_ns = now_ns, .starved_ns = starved_ns};
}

void waited_time_update(struct waited_time *waited, uint64_t now_ns, uint64_t starved_ns) {
    uint64_t passed_ns = now_ns - waited->updated_ns, starved = starved_ns - waited->starved_ns;
    uint64_t had_ns = starved < passed_ns ? passed_ns - starved / 2 : passed_ns / 2;
    waited->had_ns += had_ns < MOST_OF_AN_UPDATE_NS ? had_ns : MOST_OF_AN_UPDATE_NS;
    waited->updated_ns = now_ns;
    waited->starved_ns = starved_ns;
}

uint64_t waited_time_starved_ns(pid_t thread) {
    char path[64];
    unsigned long long ran, waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)thread);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu %llu", &ran, &waited) != 2) waited = 0;
    fclose(file);
    return waited;
}
