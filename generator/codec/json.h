// JSON behind a C interface; simdjson does the work. Parse a text, visit what is in it in order, free it.
#ifndef GENTABLES_JSON_H
#define GENTABLES_JSON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json_document;

// What is called for every value. Keys come before their values. Texts are UTF-8, without escapes, not
// terminated, and live as long as the document. `state` is handed to every function.
struct json_visitor {
    void *state;
    void (*null)(void *state);
    void (*boolean)(void *state, int value);
    void (*integer)(void *state, int64_t value);
    void (*number)(void *state, double value);
    void (*text)(void *state, const char *data, size_t length);
    void (*key)(void *state, const char *data, size_t length);
    void (*open)(void *state, int is_array);
    void (*close)(void *state, int is_array);
};

// Parses one whole JSON text. Returns a document that the caller frees, or NULL and why in `message`.
struct json_document *json_parse(const char *text, size_t length, char *message, size_t message_size);

// Visits every value. Depth is limited by the parser, to 1024. The visitor may leave by longjmp: nothing is
// lost, for the document owns all memory.
void json_visit(const struct json_document *document, const struct json_visitor *visitor);

void json_free(struct json_document *document);

#ifdef __cplusplus
}
#endif

#endif
