// Texts in the JSON that the bench and the workload program write.
#ifndef BENCH_PROTOCOL_JSON_TEXT_H
#define BENCH_PROTOCOL_JSON_TEXT_H

#include <stdio.h>

// Writes `text` in quotes, with the escapes of JSON. Bytes that are no UTF-8 become U+FFFD, so that any
// reader of JSON takes it. Errors stay in the stream.
void json_text_write(FILE *json, const char *text);

#endif
