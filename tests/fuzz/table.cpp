// Fuzzes the reader of table.csv: any table is rejected in one line, or read, and then written and read back
// as the same.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_table
//   build-fuzz/bin/fuzz_table -max_total_time=60 FOLDER tests/fuzz/corpus/table
#include "generator.h"

extern "C" {
#include "table/table.h"
}

namespace {

// Whether it is read; the text that it then has.
bool read(const void *data, size_t size, std::string *text) {
    const struct lists *lists = lists_of(fuzz::lua());
    struct problem problem = {};
    char arch[64];
    const char *given = size > 0 ? static_cast<const char *>(data) : ""; // else it may be NULL
    struct table *table = table_parse("table.csv", given, size, lists, arch, &problem);
    if (table == nullptr) {
        fuzz::check_message(problem.text);
        return false;
    }
    size_t length = 0;
    char *written = table_text(table, arch, lists, &length);
    if (written != nullptr) text->assign(written, length);
    free(written);
    table_free(table);
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string once, twice;
    if (!read(data, size, &once)) return 0;
    if (read(once.data(), once.size(), &twice) && once != twice) die("other text", once + twice);
    return 0;
}
