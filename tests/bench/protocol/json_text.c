// Texts as JSON: escapes, and U+FFFD for bytes that are no UTF-8.
#include "../../unit_test.h"

#include <stdlib.h>

#include "protocol/json_text.h"

static void assert_written(const char *text, const char *expected) {
    char *written = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&written, &size);
    assert_non_null(stream);
    json_text_write(stream, text);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(written, expected);
    free(written);
}

TEST(quotes_and_control_characters_are_escaped) {
    assert_written("", "\"\"");
    assert_written("a \"b\" \\ \n\x1f\x7f", "\"a \\\"b\\\" \\\\ \\u000a\\u001f\x7f\"");
}

TEST(characters_stay) {
    assert_written("\u00e9 \u20ac \U0001f600 \xF4\x8F\xBF\xBF",
                   "\"\u00e9 \u20ac \U0001f600 \xF4\x8F\xBF\xBF\"");
}

#define BAD "\xEF\xBF\xBD"

TEST(bytes_that_are_no_utf8_are_replaced) {
    assert_written("a\xFF-", "\"a" BAD "-\"");
    assert_written("\xE2\x82", "\"" BAD BAD "\"");                 // cut off
    assert_written("\xC0\x80", "\"" BAD BAD "\"");                 // longer than needed
    assert_written("\xED\xA0\x80", "\"" BAD BAD BAD "\"");         // half of a surrogate pair
    assert_written("\xF4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); // beyond Unicode
    assert_written("\xC3\"", "\"" BAD "\\\"\"");                   // a quote is no part of a character
}
