#include "json_text.h"

#include <stdint.h>

// The number of bytes of the UTF-8 character at `text`; 0: it is not one. The 0 at the end of a text ends a
// character that is cut off.
static size_t character_length(const unsigned char *text) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; // by length: less has a shorter form
    if (text[0] < 0x80) return 1;
    if (text[0] < 0xC0 || text[0] > 0xF4) return 0;
    size_t length = text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    uint32_t code = text[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3FU);
    }
    int is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least[length] || code > 0x10FFFF || is_surrogate ? 0 : length;
}

void json_text_write(FILE *json, const char *text) {
    fputc('"', json);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        size_t length = character_length(at);
        if (length == 0) {
            fputs("\xEF\xBF\xBD", json);
        } else if (*at == '"' || *at == '\\') {
            fprintf(json, "\\%c", *at);
        } else if (*at < ' ') {
            fprintf(json, "\\u%04x", *at);
        } else {
            fwrite(at, 1, length, json);
        }
        at += length == 0 ? 1 : length;
    }
    fputc('"', json);
}
