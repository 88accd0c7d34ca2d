// Reads request lines; see fields.h.
#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The beginning and length of the field's value. NULL: there is no such field.
static const char *find(const char *line, const char *name, size_t *length) {
    size_t name_length = strlen(name);
    for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        if (strncmp(at + 1, name, name_length) != 0 || at[1 + name_length] != '=') continue;
        const char *value = at + 1 + name_length + 1;
        *length = strcmp(name, "path") == 0 ? strlen(value) : strcspn(value, " ");
        return value;
    }
    return NULL;
}

bool line_is(const char *line, const char *kind) {
    size_t length = strlen(kind);
    return strncmp(line, kind, length) == 0 && (line[length] == ' ' || line[length] == '\0');
}

bool field_text(const char *line, const char *name, char value[], size_t size) {
    size_t length;
    const char *text = find(line, name, &length);
    if (text == NULL || length >= size) return false;
    memcpy(value, text, length);
    value[length] = '\0';
    return true;
}

// Reads a number at *at, and moves *at after it.
static bool take_number(const char **at, size_t least, size_t most, size_t *value) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    unsigned long long number = strtoull(*at, &end, 10);
    if (errno != 0 || number < least || number > most) return false;
    *at = end;
    *value = (size_t)number;
    return true;
}

bool field_number(const char *line, const char *name, size_t least, size_t most, size_t *value) {
    size_t length;
    const char *at = find(line, name, &length);
    if (at == NULL) return false;
    const char *end = at + length;
    return take_number(&at, least, most, value) && at == end;
}

bool field_numbers(const char *line, const char *name, size_t least, size_t most, size_t count,
                   size_t values[]) {
    size_t length, found = 0;
    const char *at = find(line, name, &length);
    if (at == NULL || length == 0) return false;
    for (const char *end = at + length; at < end; at++) {
        if (found == count || !take_number(&at, least, most, &values[found++])) return false;
        if (at < end && *at != ',') return false;
    }
    for (size_t i = found; found == 1 && i < count; i++) values[i] = values[0];
    return found == count || found == 1;
}
