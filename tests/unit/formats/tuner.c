// Loads an NCCL tuner file like NCCL's example plugin, with its traps, and prints the answer, `algorithm
// protocol channels`, for each line `ranks bytes` of standard input. Before that it reads the file strictly:
// text that the plugin would silently misread is an error here.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256, FIELDS = 8, MOST_RULES = 1000 };

static const char *const algorithms[] = {
    "ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat", NULL};
static const char *const protocols[] = {"simple", "ll", "ll128", NULL};

struct rule {
    size_t first, last;
    const char *algorithm, *protocol;
    int channels, nodes, ranks;
};

// The word of the list, or NULL.
static const char *find(const char *const *list, const char *word) {
    for (; *list != NULL; list++) {
        if (strcmp(*list, word) == 0) return *list;
    }
    return NULL;
}

static bool is_number(const char *text) {
    if (strcmp(text, "-1") == 0) return true;
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

// Splits a line; true if it has the right number of fields, and none that would be misread.
static bool take_strictly(char *line, struct rule *rule) {
    char *fields[FIELDS + 3], *rest = NULL;
    int count = 0;
    for (char *field = strtok_r(line, ",", &rest); field != NULL && count < FIELDS + 3;
         field = strtok_r(NULL, ",", &rest)) {
        fields[count++] = field;
    }
    if (count != FIELDS || strcmp(fields[0], "allreduce") != 0) return false;
    for (int i = 1; i < FIELDS; i++) {
        if (i != 3 && i != 4 && !is_number(fields[i])) return false;
    }
    *rule = (struct rule){.first = (size_t)strtoull(fields[1], NULL, 10),
                          .last = (size_t)strtoull(fields[2], NULL, 10),
                          .algorithm = find(algorithms, fields[3]),
                          .protocol = find(protocols, fields[4]),
                          .channels = atoi(fields[5]),
                          .nodes = atoi(fields[6]),
                          .ranks = atoi(fields[7])};
    return rule->algorithm != NULL && rule->protocol != NULL && rule->channels > 0 &&
           rule->first <= rule->last;
}

static int load(const char *path, struct rule rules[]) {
    char line[LINE];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && count < MOST_RULES) {
        if (strchr(line, '\n') == NULL) {
            printf("a line is cut off: %s\n", line);
            return -1;
        }
        if (line[0] == '#' || line[0] == '\n') continue;
        line[strcspn(line, "\n")] = '\0';
        if (!take_strictly(line, &rules[count++])) {
            printf("not a rule: line %d of rules\n", count);
            return -1;
        }
    }
    if (file != NULL) fclose(file);
    return count;
}

int main(int argc, char **argv) {
    static struct rule rules[MOST_RULES];
    int count = argc == 2 ? load(argv[1], rules) : -1, ranks;
    if (count <= 0) return 1;
    for (size_t bytes; scanf("%d %zu", &ranks, &bytes) == 2;) {
        const char *algorithm = "default", *protocol = "default";
        int channels = 1; // the plugin's default before it finds a rule
        for (int i = 0; i < count; i++) {
            const struct rule *rule = &rules[i];
            bool fits = bytes >= rule->first && bytes <= rule->last && rule->nodes == -1 &&
                        (rule->ranks == -1 || rule->ranks == ranks);
            if (!fits) continue;
            algorithm = rule->algorithm, protocol = rule->protocol, channels = rule->channels;
            break;
        }
        printf("%s %s %d\n", algorithm, protocol, channels);
    }
    return 0;
}
