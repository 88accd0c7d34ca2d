// Reads a table as RCCL's tuner does (rocm-systems 22af4d53, March 2026), and prints the answer, `algorithm
// protocol channels` or `default`, for each line `collective bytes nodes ranks` of standard input. It skips
// lines with unknown words, as RCCL does with a warning; here their number is the exit code.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256, LEAST_FIELDS = 8, MOST_FIELDS = 10, MOST_RULES = 1000, NOT_READ = 100 };

static const char *const collectives[] = {"broadcast",     "reduce",    "allgather",
                                          "reducescatter", "allreduce", NULL};
static const char *const algorithms[] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat", NULL};
static const char *const protocols[] = {"ll", "ll128", "simple", NULL};

struct rule {
    const char *collective, *algorithm, *protocol;
    unsigned long long first, last;
    int channels, nodes, ranks;
};

// The word of the list, or NULL.
static const char *find(const char *const *list, const char *word) {
    while (*list != NULL && strcmp(*list, word) != 0) list++;
    return *list;
}

static char *trimmed(char *text) {
    text += strspn(text, " \t");
    for (size_t end = strlen(text); end > 0 && strchr(" \t\r\n", text[end - 1]) != NULL;) text[--end] = '\0';
    return text;
}

static bool take(char *line, struct rule *rule) {
    char *fields[MOST_FIELDS], *rest = NULL;
    int count = 0;
    for (char *field = strtok_r(line, ",", &rest); field != NULL && count < MOST_FIELDS;
         field = strtok_r(NULL, ",", &rest)) {
        fields[count++] = trimmed(field);
        if (*fields[count - 1] == '\0') return false;
    }
    if (count < LEAST_FIELDS) return false;
    *rule = (struct rule){.collective = find(collectives, fields[0]),
                          .first = strtoull(fields[1], NULL, 10),
                          .last = strtoull(fields[2], NULL, 10),
                          .algorithm = find(algorithms, fields[3]),
                          .protocol = find(protocols, fields[4]),
                          .channels = atoi(fields[5]),
                          .nodes = atoi(fields[6]),
                          .ranks = atoi(fields[7])};
    return rule->collective != NULL && rule->algorithm != NULL && rule->protocol != NULL;
}

// Returns the number of lines that were skipped; NOT_READ without a file.
static int load(const char *path, struct rule rules[], int *count) {
    char line[LINE];
    int skipped = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) return NOT_READ;
    while (fgets(line, sizeof line, file) != NULL && *count < MOST_RULES) {
        char *text = trimmed(line);
        if (*text == '#' || *text == '\0') continue;
        if (take(text, &rules[*count])) {
            (*count)++;
        } else {
            skipped++;
        }
    }
    fclose(file);
    return skipped;
}

int main(int argc, char **argv) {
    static struct rule rules[MOST_RULES];
    char collective[32];
    int count = 0, nodes, ranks, skipped = argc == 2 ? load(argv[1], rules, &count) : NOT_READ;
    for (unsigned long long bytes; scanf("%31s %llu %d %d", collective, &bytes, &nodes, &ranks) == 4;) {
        const struct rule *found = NULL;
        for (int i = count - 1; i >= 0; i--) { // the first one remains
            const struct rule *rule = &rules[i];
            if (strcmp(rule->collective, collective) == 0 && bytes >= rule->first && bytes <= rule->last &&
                (rule->nodes == -1 || rule->nodes == nodes) && (rule->ranks == -1 || rule->ranks == ranks)) {
                found = rule;
            }
        }
        if (found == NULL) {
            puts("default");
        } else {
            printf("%s %s %d\n", found->algorithm, found->protocol, found->channels);
        }
    }
    return skipped;
}
