// Fuzzes the reader of benchmark CSVs: any file is read, or rejected in one line; rows that were read are
// written, and read back as the same.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_rows
//   build-fuzz/bin/fuzz_rows -max_total_time=60 FOLDER tests/fuzz/corpus/rows
#include "generator.h"

extern "C" {
#include "rows/rows.h"
}

namespace {

struct rows *read(const void *data, size_t size) {
    file_in_memory file(data, size);
    const char *path = file.path().c_str();
    struct problem problem = {};
    struct rows *rows = rows_read(&path, 1, lists_of(fuzz::lua()), &problem);
    if (rows == nullptr) fuzz::check_message(problem.text);
    return rows;
}

// The text of rows; "" if they have none, as rows that the file has twice.
std::string text_of(const struct rows *rows) {
    size_t size = 0;
    struct problem problem = {};
    char *text = rows_text(rows, lists_of(fuzz::lua()), &size, &problem);
    if (text == nullptr) fuzz::check_message(problem.text);
    std::string out = text == nullptr ? "" : std::string(text, size);
    free(text);
    return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rows *rows = read(data, size);
    if (rows == nullptr) return 0;
    const std::string text = text_of(rows);
    if (!text.empty()) {
        struct rows *again = read(text.data(), text.size());
        // A time below the last written decimal is read as none.
        if (again != nullptr && again->count != rows->count) die("other rows", text);
        if (again != nullptr && text_of(again) != text) die("other text", text);
        rows_free(again);
    }
    rows_free(rows);
    return 0;
}
