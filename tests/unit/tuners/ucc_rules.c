// Reads sections as UCC does (8263de47), and prints the algorithm of TL/UCP, or `default`, for each line
// `bytes ranks ppn nodes` of an allreduce of host memory in standard input.
//
//   ucc_rules FILE [backwards]
//
// UCC visits sections in the order of a hash, and the last one that fits a team replaces those before it;
// `backwards` visits them from the last. A parameter or a section that UCC does not accept ends with exit
// code 1.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 4096, MOST_SECTIONS = 100, KEYS = 3 };
static const char *const keys[KEYS] = {"team_size", "ppn", "nnodes"};
static const char *const algorithms[] = {"knomial", "sra_knomial", "sliding_window", "dbt", "ring"};
static const unsigned long long INFINITE = ~0ULL;

struct section {
    unsigned low[KEYS], high[KEYS]; // by `keys`; any, unless the section has it
    char tune[LINE];
};

// `a` or `a-b`.
static bool take_range(const char *text, unsigned *low, unsigned *high) {
    char end;
    if (sscanf(text, "%u-%u%c", low, high, &end) == 2) return *low <= *high;
    bool is_number = sscanf(text, "%u%c", low, &end) == 1;
    *high = *low;
    return is_number;
}

// The text between the brackets.
static bool take_section(char *text, struct section *section) {
    char *rest = NULL;
    for (int i = 0; i < KEYS; i++) section->low[i] = 0, section->high[i] = ~0U;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        int key = 0;
        if (value == NULL) return false;
        *value++ = '\0';
        while (key < KEYS && strcmp(keys[key], word) != 0) key++;
        if (key == KEYS || !take_range(value, &section->low[key], &section->high[key])) return false;
    }
    return true;
}

// Returns the number of sections; -1 for a file that UCC does not accept.
static int load(const char *path, struct section sections[]) {
    char line[LINE];
    int count = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) return -1;
    while (count >= 0 && count < MOST_SECTIONS && fgets(line, sizeof line, file) != NULL) {
        static const char parameter[] = "UCC_TL_UCP_TUNE=";
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0') continue;
        char *end = strchr(line, ']');
        if (line[0] == '[' && end != NULL) {
            *end = '\0';
            count = take_section(line + 1, &sections[count]) ? count + 1 : -1;
        } else if (count > 0 && strncmp(line, parameter, strlen(parameter)) == 0) {
            strcpy(sections[count - 1].tune, line + strlen(parameter));
        } else {
            count = -1;
        }
    }
    fclose(file);
    return count;
}

// `a-b` in bytes, where b may be `inf`; UCC 1.9.0 runs its default algorithm at b without a range of its own.
static bool take_bytes(const char *text, unsigned long long *first, unsigned long long *last) {
    char end;
    const char *dash = strchr(text, '-');
    if (sscanf(text, "%llu-%llu%c", first, last, &end) == 2) return *first <= *last;
    *last = INFINITE;
    return dash != NULL && strcmp(dash, "-inf") == 0 && sscanf(text, "%llu", first) == 1;
}

static const char *algorithm_of(const char *name) {
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        if (strcmp(algorithms[i], name) == 0) return algorithms[i];
    }
    return NULL;
}

// The algorithm of a token if it is for this size, else *chosen. One qualifier that is none fails the whole
// parameter.
static bool apply_token(char *token, unsigned long long bytes, const char **chosen) {
    unsigned long long first = 0, last = INFINITE;
    const char *algorithm = NULL;
    char *rest = NULL;
    for (char *word = strtok_r(token, ":", &rest); word != NULL; word = strtok_r(NULL, ":", &rest)) {
        if (strcmp(word, "allreduce") == 0 || strcmp(word, "host") == 0) continue;
        if (word[0] == '@') {
            algorithm = algorithm_of(word + 1);
            if (algorithm == NULL) return false;
        } else if (!take_bytes(word, &first, &last)) {
            return false;
        }
    }
    if (algorithm != NULL && bytes >= first && (bytes < last || last == INFINITE)) *chosen = algorithm;
    return true;
}

static bool apply(const struct section *section, unsigned long long bytes, const char **chosen) {
    char tune[LINE], *rest = NULL;
    strcpy(tune, section->tune);
    for (char *token = strtok_r(tune, "#", &rest); token != NULL; token = strtok_r(NULL, "#", &rest)) {
        if (!apply_token(token, bytes, chosen)) return false;
    }
    return true;
}

static bool fits(const struct section *section, const unsigned team[KEYS]) {
    for (int i = 0; i < KEYS; i++) {
        if (team[i] < section->low[i] || team[i] > section->high[i]) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static struct section sections[MOST_SECTIONS];
    int count = argc >= 2 ? load(argv[1], sections) : -1;
    unsigned team[KEYS];
    if (count < 0) return 1;
    for (unsigned long long bytes; scanf("%llu %u %u %u", &bytes, &team[0], &team[1], &team[2]) == 4;) {
        const struct section *last = NULL;
        const char *chosen = "default";
        for (int i = 0; i < count; i++) {
            const struct section *section = &sections[argc > 2 ? count - 1 - i : i];
            if (fits(section, team)) last = section;
        }
        if (last != NULL && !apply(last, bytes, &chosen)) return 1;
        puts(chosen);
    }
    return 0;
}
