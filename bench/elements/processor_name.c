// The processor's name from /proc/cpuinfo; see processor_name.h.
#include "processor_name.h"

#include <stdio.h>
#include <string.h>

// Keys of /proc/cpuinfo, best first: x86 has the first one, ARM the others.
static const char *const keys[] = {"model name", "Model", "CPU part"};
enum { KEYS = sizeof keys / sizeof keys[0], NAME_SIZE = 200 };

// The value of `key` in a line "key : value"; NULL: the line has another key.
static const char *value_of(const char *line, const char *key) {
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) return NULL;
    line += length + strspn(line + length, " \t");
    if (*line != ':') return NULL;
    line++;
    return line + strspn(line, " \t");
}

void processor_name(char name[], size_t size) {
    char line[512], found[KEYS][NAME_SIZE] = {""};
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && found[0][0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        for (int i = 0; i < KEYS; i++) {
            const char *value = value_of(line, keys[i]);
            if (value != NULL && found[i][0] == '\0') snprintf(found[i], NAME_SIZE, "%s", value);
        }
    }
    if (file != NULL) fclose(file);
    int best = 0;
    while (best < KEYS && found[best][0] == '\0') best++;
    snprintf(name, size, "%s", best < KEYS ? found[best] : "CPU");
}
