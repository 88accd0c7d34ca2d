// Effects of groups of series; see effects.h.
#include "effects.h"

#include <math.h>
#include <stdlib.h>

#include "segments.h"

static const double TRIMMED = 0.1; // of a group's series, at either end
enum { ROUNDS = 2, FEWEST_SERIES = 3 };

void effects_free(struct effects *effects) {
    if (effects == NULL) return;
    for (size_t level = 0; level < EFFECTS_LEVELS; level++) free(effects->effect[level]);
    free(effects->levels);
    free(effects->series);
    free(effects->work);
    free(effects);
}

static double *unmeasured(size_t count) {
    double *values = malloc((count + 1) * sizeof *values);
    for (size_t i = 0; values != NULL && i < count; i++) values[i] = NAN;
    return values;
}

struct effects *effects_new(size_t runs, size_t count, const struct effects_series *series) {
    struct effects *effects = calloc(1, sizeof *effects);
    if (effects == NULL) return NULL;
    effects->runs = runs, effects->count = count;
    effects->series = malloc((count + 1) * sizeof *series);
    effects->levels = unmeasured(runs * count);
    effects->work = unmeasured(runs > count ? runs : count);
    bool is_whole = effects->series != NULL && effects->levels != NULL && effects->work != NULL;
    for (size_t i = 0; is_whole && i < count; i++) {
        effects->series[i] = series[i];
        for (size_t level = 0; level < EFFECTS_LEVELS; level++) {
            if (series[i].group[level] >= effects->groups[level]) {
                effects->groups[level] = series[i].group[level] + 1;
            }
        }
    }
    for (size_t level = 0; is_whole && level < EFFECTS_LEVELS; level++) {
        effects->effect[level] = unmeasured(effects->groups[level] * runs);
        is_whole = effects->effect[level] != NULL;
    }
    if (is_whole) return effects;
    effects_free(effects);
    return NULL;
}

static double trimmed_mean(double *values, size_t count) {
    size_t cut = (size_t)(TRIMMED * (double)count), kept = count - 2 * cut;
    if (cut > 0) {
        segments_select(values, count, cut);
        segments_select(values + cut, count - cut, kept - 1);
    }
    double sum = 0;
    for (size_t i = cut; i < cut + kept; i++) sum += values[i];
    return sum / (double)kept;
}

// The members of each group of a level, one group after the other: first[group] is the place of its first in
// `members`, first[groups] their number.
static void sort_members(const struct effects *effects, size_t level, size_t *first, size_t *members) {
    size_t groups = effects->groups[level];
    for (size_t g = 0; g <= groups; g++) first[g] = 0;
    for (size_t i = 0; i < effects->count; i++) first[effects->series[i].group[level]]++;
    for (size_t g = 0, sum = 0; g <= groups; g++) {
        sum += first[g];
        first[g] = sum;
    }
    for (size_t i = effects->count; i-- > 0;) members[--first[effects->series[i].group[level]]] = i;
}

static void set_effects(struct effects *effects, size_t level, const double *own, const size_t *first,
                        const size_t *members) {
    for (size_t group = 0; group < effects->groups[level]; group++) {
        size_t size = first[group + 1] - first[group];
        size_t fewest = size < FEWEST_SERIES ? size : FEWEST_SERIES;
        for (size_t run = 0; run < effects->runs; run++) {
            size_t measured = 0;
            for (size_t i = first[group]; i < first[group + 1]; i++) {
                double value = effects->levels[members[i] * effects->runs + run] - own[members[i]];
                if (!isnan(value)) effects->work[measured++] = value;
            }
            bool has_enough = measured > 0 && measured >= fewest;
            effects->effect[level][group * effects->runs + run] =
                has_enough ? trimmed_mean(effects->work, measured) : NAN;
        }
    }
}

// The level of each series: the median over runs of its levels without the effect of its first group.
static void set_own(struct effects *effects, double *own) {
    for (size_t i = 0; i < effects->count; i++) {
        const double *of_group = effects->effect[0] + effects->series[i].group[0] * effects->runs;
        size_t measured = 0;
        for (size_t run = 0; run < effects->runs; run++) {
            double level = effects->levels[i * effects->runs + run];
            if (!isnan(level)) effects->work[measured++] = level - (isnan(of_group[run]) ? 0 : of_group[run]);
        }
        own[i] = measured > 0 ? segments_median(effects->work, measured) : 0;
    }
}

bool effects_solve(struct effects *effects) {
    size_t most = effects->count + 1;
    double *own = malloc(most * sizeof *own);
    size_t *first = malloc((most + 1) * sizeof *first), *members = malloc(most * sizeof *members);
    bool has_memory = own != NULL && first != NULL && members != NULL;
    if (has_memory) {
        sort_members(effects, 0, first, members);
        for (int round = 0; round < ROUNDS; round++) {
            set_own(effects, own);
            set_effects(effects, 0, own, first, members);
        }
        for (size_t level = 1; level < EFFECTS_LEVELS; level++) {
            sort_members(effects, level, first, members);
            set_effects(effects, level, own, first, members);
        }
        for (size_t i = 0; i < effects->count * effects->runs; i++) {
            effects->levels[i] -= own[i / effects->runs];
        }
    }
    free(own);
    free(first);
    free(members);
    return has_memory;
}

// The level of a series in a run without the effect of its smallest group that has one.
static double rest_of(const struct effects *effects, size_t series, size_t run) {
    for (size_t level = EFFECTS_LEVELS; level-- > 0;) {
        size_t group = effects->series[series].group[level];
        double effect = effects->effect[level][group * effects->runs + run];
        if (!isnan(effect)) return effects->levels[series * effects->runs + run] - effect;
    }
    return effects->levels[series * effects->runs + run];
}

void effects_rest(const struct effects *effects, size_t series, double *values) {
    size_t cell = effects->series[series].cell, first = series, last = series;
    while (first > 0 && effects->series[first - 1].cell == cell) first--;
    while (last + 1 < effects->count && effects->series[last + 1].cell == cell) last++;
    for (size_t run = 0; run < effects->runs; run++) {
        double sum = 0;
        size_t others = 0;
        for (size_t i = first; i <= last; i++) {
            double rest = rest_of(effects, i, run);
            if (i == series || isnan(rest)) continue;
            sum += rest, others++;
        }
        values[run] = rest_of(effects, series, run) - (others > 0 ? sum / (double)others : 0);
    }
}
