// Request lines: which texts are read as a number, a list or a text, and which are rejected.
#include "../../unit_test.h"

#include "workload/fields.h"

TEST(numbers_are_whole_and_within_bounds) {
    size_t value = 0;
    assert_true(field_number("run steps=20 warm_up=3", "steps", 1, 100, &value));
    assert_int_equal(value, 20);
    assert_true(field_number("run steps=20 warm_up=3", "warm_up", 0, 100, &value));
    assert_int_equal(value, 3);
    static const char *const wrong[] = {"run steps=",   "run steps=0",  "run steps=101",
                                        "run steps=-1", "run steps=2x", "run steps= 2",
                                        "run xsteps=2", "run",          "run steps=99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(field_number(wrong[i], "steps", 1, 100, &value));
    }
}

TEST(a_list_has_its_length_or_one_for_all) {
    size_t values[3] = {0};
    assert_true(field_numbers("gemm m=1,2,3 n=4", "m", 1, 9, 3, values));
    assert_int_equal(values[2], 3);
    assert_true(field_numbers("gemm m=7 n=4", "m", 1, 9, 3, values));
    assert_int_equal(values[0] + values[1] + values[2], 21);
    static const char *const wrong[] = {"gemm m=1,2", "gemm m=1,2,3,4", "gemm m=1,,3",  "gemm m=1,2,",
                                        "gemm m=",    "gemm m=1;2;3",   "gemm m=1,2,10"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(field_numbers(wrong[i], "m", 1, 9, 3, values));
    }
}

TEST(a_path_takes_the_rest_of_the_line) {
    char text[32];
    assert_true(field_text("run steps=2 path=/a b/c", "path", text, sizeof text));
    assert_string_equal(text, "/a b/c");
    assert_true(field_text("run wait=yield path=x", "wait", text, sizeof text));
    assert_string_equal(text, "yield");
    assert_false(field_text("run wait=yield", "wait", text, 5));
    assert_true(line_is("run a=1", "run"));
    assert_true(line_is("quit", "quit"));
    assert_false(line_is("runs a=1", "run"));
}
