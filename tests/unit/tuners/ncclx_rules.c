// Reads rules as NCCLX's tuner does (torchcomms, June 2026, v2_29 and v2_30; CSV), and prints the answer,
// `algorithm protocol channels` or `default`, for each line `bytes nodes ranks` of an allreduce in standard
// input. A faulty line ends it with exit code 1, as it fails the start of a communicator.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 512, FIELDS = 7, MOST_FIELDS = 10, MOST_RULES = 1000 };

struct interval {
    bool has_low, has_high, with_low, with_high;
    int64_t low, high;
};

struct rule {
    char algorithm[24], protocol[24];
    int channels;
    struct interval bytes, nodes, local_ranks;
};

static const char *const algorithms[] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat", NULL};
static const char *const protocols[] = {"ll", "ll128", "simple", NULL};

static bool has(const char *const *list, const char *word) {
    while (*list != NULL && strcmp(*list, word) != 0) list++;
    return *list != NULL;
}

static char *trimmed(char *text) {
    text += strspn(text, " \t");
    for (size_t end = strlen(text); end > 0 && strchr(" \t\r\n", text[end - 1]) != NULL;) text[--end] = '\0';
    return text;
}

static bool take_whole(char *text, int64_t *number) {
    char *end;
    text = trimmed(text);
    *number = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0';
}

// `*`, a number, or an interval with brackets; nothing between bracket and comma is no bound.
static bool take_interval(char *text, struct interval *interval) {
    *interval = (struct interval){.with_low = true, .with_high = true};
    if (strcmp(text, "*") == 0) return true;
    if (*text != '(' && *text != '[') {
        interval->has_low = interval->has_high = take_whole(text, &interval->low);
        interval->high = interval->low;
        return interval->has_low;
    }
    size_t length = strlen(text);
    char *comma = strchr(text, ','), last = text[length - 1];
    if (comma == NULL || (last != ')' && last != ']')) return false;
    interval->with_low = *text == '[', interval->with_high = last == ']';
    text[length - 1] = *comma = '\0';
    interval->has_low = *trimmed(text + 1) != '\0', interval->has_high = *trimmed(comma + 1) != '\0';
    if (interval->has_low && !take_whole(text + 1, &interval->low)) return false;
    if (interval->has_high && !take_whole(comma + 1, &interval->high)) return false;
    return !(interval->has_low && interval->has_high) || interval->low <= interval->high;
}

static bool matches(const struct interval *interval, int64_t number) {
    if (interval->has_low && (interval->with_low ? number < interval->low : number <= interval->low)) {
        return false;
    }
    return !(interval->has_high &&
             (interval->with_high ? number > interval->high : number >= interval->high));
}

// Splits at commas outside of brackets. Returns the number of fields.
static int split(char *line, char *fields[MOST_FIELDS]) {
    int count = 0, depth = 0;
    fields[count++] = line;
    for (; *line != '\0'; line++) {
        if (*line == '(' || *line == '[') depth++;
        if ((*line == ')' || *line == ']') && depth > 0) depth--;
        if (*line == ',' && depth == 0 && count < MOST_FIELDS) {
            *line = '\0';
            fields[count++] = line + 1;
        }
    }
    for (int i = 0; i < count; i++) fields[i] = trimmed(fields[i]);
    return count;
}

static bool take(char *line, struct rule *rule) {
    char *fields[MOST_FIELDS];
    int64_t channels;
    if (split(line, fields) < FIELDS || strcmp(fields[0], "allreduce") != 0) return false;
    if (!has(algorithms, fields[2]) || !has(protocols, fields[3])) return false;
    if (!take_whole(fields[4], &channels)) return false;
    strcpy(rule->algorithm, fields[2]);
    strcpy(rule->protocol, fields[3]);
    rule->channels = (int)channels;
    return take_interval(fields[1], &rule->bytes) && take_interval(fields[5], &rule->nodes) &&
           take_interval(fields[6], &rule->local_ranks);
}

// Returns the number of rules; -1: one is faulty, or there is no file.
static int load(const char *path, struct rule rules[]) {
    char line[LINE];
    int count = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) return -1;
    while (count >= 0 && count < MOST_RULES && fgets(line, sizeof line, file) != NULL) {
        char *text = trimmed(line);
        if (*text == '#' || *text == '\0') continue;
        count = take(text, &rules[count]) ? count + 1 : -1;
    }
    fclose(file);
    return count;
}

int main(int argc, char **argv) {
    static struct rule rules[MOST_RULES];
    int count = argc == 2 ? load(argv[1], rules) : -1;
    int64_t nodes, ranks;
    if (count < 0) return 1;
    for (long long bytes, n, r; scanf("%lld %lld %lld", &bytes, &n, &r) == 3;) {
        nodes = n, ranks = r;
        int i = 0;
        while (i < count && !(matches(&rules[i].bytes, bytes / ranks) && matches(&rules[i].nodes, nodes) &&
                              matches(&rules[i].local_ranks, ranks / nodes))) {
            i++;
        }
        if (i == count) {
            puts("default");
        } else {
            printf("%s %s %d\n", rules[i].algorithm, rules[i].protocol, rules[i].channels);
        }
    }
    return 0;
}
