// require "core.xlsx": workbooks by libxlsxwriter, written sheet by sheet and row by row. The file is at its
// path only when the workbook is complete; equal sheets give equal bytes. pages/sheets.lua decides on sheets,
// names and formats.
//
// - open(path, cell_text) returns a book, or nil, message. cell_text(text), for texts that are long or not
//   ASCII, returns the text for a cell, and whether it was cut to the length that a cell can have.
// - book:add{ name =, columns = { titles }, rows = a list of rows, or a function that returns the next row,
//   formats = { [index] = number format }, colours = { [index] = { 0xRRGGBB, ... } of two or three } }
//   returns the number of cells that were cut to the length that a cell can have, and the number of rows that
//   were dropped because a sheet was full.
// - book:close() returns true, or nil, message. A book that is not closed leaves no file.
#include <errno.h>
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xlsxwriter.h>

#include "base/bindings.h"
#include "base/stream_errors.h"
#include "system/cleanup.h"
#include "system/file.h"

static const char book_type[] = "gentables.xlsx", unwritten[] = "cannot be written: ";

// Limits of a workbook, and widths of columns in characters.
enum { MOST_ROWS = LXW_ROW_MAX, MOST_COLUMNS = LXW_COL_MAX, MOST_PLAIN = 32767 };
enum { LEAST_WIDTH = 6, MOST_WIDTH = 60, FILTER_WIDTH = 3, NUMBER_WIDTH = 11 };
// Doubles, and so cells, have all whole numbers up to this one.
#define MOST_EXACT (1LL << 53)

// The library does not check all of its allocations: after a failed one it may crash, or write another
// workbook. So a book guards against faults as long as it is open, and fails if errno shows a failed one.
struct book {
    lxw_workbook *workbook; // NULL: closed
    bool is_guarded;
    lxw_format *header;
    struct file_stage stage; // the library opens and writes its file
    unsigned stream_errors;  // of the program, before the library wrote to any
    char path[PATH_MAX];
};

// One sheet while it is written.
struct sheet {
    lxw_worksheet *worksheet;
    int columns;          // at most MOST_COLUMNS
    lxw_format **formats; // one for each column; NULL: the default
    int *widths;          // in characters
    lua_Integer cut;      // the number of cells that were cut
    bool lost_memory;     // whether an allocation failed
};

static struct book *check_book(lua_State *lua) {
    struct book *book = luaL_checkudata(lua, 1, book_type);
    luaL_argcheck(lua, book->workbook != NULL, 1, "the workbook is closed");
    return book;
}

static void drop_book(struct book *book) {
    if (book->workbook != NULL) lxw_workbook_free(book->workbook);
    book->workbook = NULL;
    if (book->is_guarded) out_of_memory_unguard();
    book->is_guarded = false;
    file_stage_drop(&book->stage);
}

static int drop(lua_State *lua) {
    drop_book(luaL_checkudata(lua, 1, book_type));
    return 0;
}

// Drops a book that cannot be completed.
static int fail_with(lua_State *lua, struct book *book, const char *what, const char *reason) {
    struct problem problem;
    drop_book(book);
    problem_set(&problem, "%s: %s%s; the old file is unchanged", book->path, what, reason);
    return push_failed(lua, problem.text);
}

// The same, after a failed allocation. The book's memory is not freed, because it may be invalid.
static int fail_without_memory(lua_State *lua, struct book *book) {
    book->workbook = NULL;
    return fail_with(lua, book, "out of memory", "");
}

// The folder of the file. The library's temporary files are there, too, so that a full disk is an error when
// they are written.
static void folder_of(const char *path, char folder[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    memcpy(folder, length == 0 ? "." : path, length == 0 ? 1 : length);
    folder[length == 0 ? 1 : length] = '\0';
}

// Silences the library during a call: it prints messages on stderr, a variable of glibc, which a stream that
// discards them replaces meanwhile. One message is the only sign of some failed allocations; the library
// prints the same one if it cannot open a file.
struct hush {
    FILE *shown;      // the former stderr
    bool lost_memory; // afterwards: whether an allocation failed
    int reason;       // afterwards: errno
};

static ssize_t discard(void *cookie, const char *data, size_t size) {
    static const char sign[] = "Memory allocation failed";
    struct hush *hush = cookie;
    if (memmem(data, size, sign, sizeof sign - 1) != NULL) hush->lost_memory = true;
    return (ssize_t)size;
}

static void hush_begin(struct hush *hush) {
    *hush = (struct hush){.shown = stderr};
    FILE *discarding = fopencookie(hush, "w", (cookie_io_functions_t){.write = discard});
    if (discarding != NULL) stderr = discarding;
    hush->lost_memory = discarding == NULL; // signs would be missed
    errno = 0;
}

static void hush_end(struct hush *hush) {
    hush->reason = errno;
    if (stderr != hush->shown) fclose(stderr);
    stderr = hush->shown;
    if (hush->reason == ENOMEM) hush->lost_memory = true;
}

// open(path, cell_text)
static int open_book(lua_State *lua) {
    size_t length;
    const char *path = luaL_checklstring(lua, 1, &length);
    luaL_argcheck(lua, length < PATH_MAX, 1, "too long a name");
    luaL_checktype(lua, 2, LUA_TFUNCTION);
    struct book *book = lua_newuserdatauv(lua, sizeof *book, 1);
    lua_pushvalue(lua, 2);
    lua_setiuservalue(lua, -2, 1);
    *book = (struct book){.stage = {.file = -1}, .stream_errors = stream_errors()};
    luaL_setmetatable(lua, book_type);
    memcpy(book->path, path, length + 1);
    struct problem problem;
    if (!file_stage_open(&book->stage, book->path, &problem)) return push_failed(lua, problem.text);
    if (book->stage.temporary == NULL) {
        file_stage_drop(&book->stage);
        problem_set(&problem, "%s: a workbook is written to a file, not to a device or a pipe", book->path);
        return push_failed(lua, problem.text);
    }
    char folder[PATH_MAX], name[STAGE_NAME_SIZE];
    folder_of(path, folder);
    lxw_workbook_options options = {.constant_memory = LXW_TRUE, .tmpdir = folder, .use_zip64 = LXW_FALSE};
    out_of_memory_guard(NULL);
    book->is_guarded = true;
    book->workbook = workbook_new_opt(file_stage_name(&book->stage, name), &options);
    if (book->workbook == NULL) return fail_without_memory(lua, book);
    lxw_doc_properties properties = {.created = 946684800}; // always the same: 2000-01-01
    workbook_set_properties(book->workbook, &properties);
    book->header = workbook_add_format(book->workbook);
    if (book->header == NULL || errno == ENOMEM) return fail_without_memory(lua, book);
    format_set_bold(book->header);
    format_set_bg_color(book->header, 0xE7EBF0);
    format_set_bottom(book->header, LXW_BORDER_THIN);
    return 1;
}

// Whether `text` can be written without a change.
static bool is_plain(const char *text, size_t size) {
    if (size > MOST_PLAIN) return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] > 0x7E) return false;
    return true;
}

static void widen(struct sheet *sheet, int column, size_t characters) {
    int width = characters > MOST_WIDTH ? MOST_WIDTH : (int)characters;
    if (width > sheet->widths[column]) sheet->widths[column] = width;
}

static void write_text(lua_State *lua, struct sheet *sheet, lxw_row_t row, int column, lxw_format *format) {
    size_t size;
    const char *text = lua_tolstring(lua, -1, &size);
    bool plain = is_plain(text, size);
    widen(sheet, column, size);
    if (!plain) {
        lua_getiuservalue(lua, 1, 1); // the book's cell_text
        lua_pushvalue(lua, -2);
        lua_call(lua, 1, 2);
        sheet->cut += lua_toboolean(lua, -1);
        text = lua_tostring(lua, -2);
    }
    worksheet_write_string(sheet->worksheet, row, (lxw_col_t)column, text, format);
    if (!plain) lua_pop(lua, 2);
}

static size_t digits_of(double value) {
    double size = fabs(value);
    return (value < 0) + (size < 10 ? 1 : (size_t)log10(size) + 1);
}

// Numbers that no cell can have (infinity, NaN, whole ones too large for a double) are written as text.
static void write_number(lua_State *lua, struct sheet *sheet, lxw_row_t row, int column) {
    lxw_format *format = sheet->formats[column];
    double value = lua_tonumber(lua, -1);
    bool whole = lua_isinteger(lua, -1);
    lua_Integer exact = whole ? lua_tointeger(lua, -1) : 0;
    if (!isfinite(value)) {
        const char *text = isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
        widen(sheet, column, strlen(text));
        worksheet_write_string(sheet->worksheet, row, (lxw_col_t)column, text, NULL);
    } else if (exact > MOST_EXACT || exact < -MOST_EXACT) {
        lua_pushvalue(lua, -1); // the conversion changes the value in place
        write_text(lua, sheet, row, column, NULL);
        lua_pop(lua, 1);
    } else {
        widen(sheet, column, whole ? digits_of(value) + 1 : format ? digits_of(value) + 6 : NUMBER_WIDTH);
        worksheet_write_number(sheet->worksheet, row, (lxw_col_t)column, value, format);
    }
}

// Writes the value at the top of the stack.
static void write_cell(lua_State *lua, struct sheet *sheet, lxw_row_t row, int column) {
    switch (lua_type(lua, -1)) {
    case LUA_TNIL: break;
    case LUA_TNUMBER: write_number(lua, sheet, row, column); break;
    case LUA_TBOOLEAN:
        widen(sheet, column, 5);
        worksheet_write_boolean(sheet->worksheet, row, (lxw_col_t)column, lua_toboolean(lua, -1), NULL);
        break;
    case LUA_TSTRING: write_text(lua, sheet, row, column, NULL); break;
    default: luaL_error(lua, "a cell is a %s", luaL_typename(lua, -1));
    }
}

static void write_header(lua_State *lua, struct sheet *sheet, int titles, lxw_format *format) {
    for (int column = 0; column < sheet->columns; column++) {
        if (lua_rawgeti(lua, titles, column + 1) != LUA_TSTRING) luaL_error(lua, "a title is no text");
        write_text(lua, sheet, 0, column, format);
        sheet->widths[column] += FILTER_WIDTH;
        lua_pop(lua, 1);
    }
}

// Pushes the next row of the list or function at `rows`. After the last one returns false and pushes nothing.
static bool push_row(lua_State *lua, int rows, lua_Integer index) {
    if (lua_isfunction(lua, rows)) {
        lua_pushvalue(lua, rows);
        lua_call(lua, 0, 1);
    } else {
        lua_rawgeti(lua, rows, index);
    }
    if (lua_istable(lua, -1)) return true;
    lua_pop(lua, 1);
    return false;
}

// Returns the number of rows.
static lua_Integer write_rows(lua_State *lua, struct sheet *sheet, int rows) {
    lua_Integer index = 1;
    for (; push_row(lua, rows, index); index++) {
        for (int column = 0; column < sheet->columns && index < MOST_ROWS; column++) {
            lua_rawgeti(lua, -1, column + 1);
            write_cell(lua, sheet, (lxw_row_t)index, column);
            if (errno == ENOMEM) sheet->lost_memory = true;
            lua_pop(lua, 1);
        }
        lua_pop(lua, 1);
    }
    return index - 1;
}

// Fills `sheet->formats` from the table `formats` of the description at index 2.
static void take_formats(lua_State *lua, const struct book *book, struct sheet *sheet) {
    if (lua_getfield(lua, 2, "formats") == LUA_TTABLE) {
        for (int column = 0; column < sheet->columns; column++) {
            if (lua_rawgeti(lua, -1, column + 1) == LUA_TSTRING) {
                sheet->formats[column] = workbook_add_format(book->workbook);
                if (sheet->formats[column] == NULL) luaL_error(lua, "out of memory");
                format_set_num_format(sheet->formats[column], lua_tostring(lua, -1));
            }
            lua_pop(lua, 1);
        }
    }
    lua_pop(lua, 1);
}

static lxw_color_t colour_at(lua_State *lua, int index) {
    lua_rawgeti(lua, -1, index);
    lxw_color_t colour = (lxw_color_t)luaL_checkinteger(lua, -1);
    lua_pop(lua, 1);
    return colour;
}

// A scale over one column, of the colours in the list at the top of the stack.
static void add_scale(lua_State *lua, const struct sheet *sheet, int column, lxw_row_t last_row) {
    bool three = lua_rawlen(lua, -1) == 3;
    lxw_conditional_format scale = {.type = three ? LXW_CONDITIONAL_3_COLOR_SCALE
                                                  : LXW_CONDITIONAL_2_COLOR_SCALE};
    scale.min_color = colour_at(lua, 1);
    if (three) scale.mid_color = colour_at(lua, 2);
    scale.max_color = colour_at(lua, three ? 3 : 2);
    worksheet_conditional_format_range(sheet->worksheet, 1, (lxw_col_t)column, last_row, (lxw_col_t)column,
                                       &scale);
}

static void add_colours(lua_State *lua, const struct sheet *sheet, lxw_row_t last_row) {
    if (lua_getfield(lua, 2, "colours") == LUA_TTABLE && last_row > 0) {
        for (int column = 0; column < sheet->columns; column++) {
            if (lua_rawgeti(lua, -1, column + 1) == LUA_TTABLE) add_scale(lua, sheet, column, last_row);
            lua_pop(lua, 1);
        }
    }
    lua_pop(lua, 1);
}

static void lay_out(const struct sheet *sheet, lxw_row_t last_row) {
    worksheet_freeze_panes(sheet->worksheet, 1, 0);
    if (sheet->columns > 0)
        worksheet_autofilter(sheet->worksheet, 0, 0, last_row, (lxw_col_t)(sheet->columns - 1));
    for (int column = 0; column < sheet->columns; column++) {
        int width = sheet->widths[column] < LEAST_WIDTH ? LEAST_WIDTH : sheet->widths[column];
        worksheet_set_column(sheet->worksheet, (lxw_col_t)column, (lxw_col_t)column, width + 1, NULL);
    }
}

// Pushes a zeroed buffer.
static void *push_buffer(lua_State *lua, size_t size) {
    void *buffer = lua_newuserdatauv(lua, size + 1, 0);
    memset(buffer, 0, size + 1);
    return buffer;
}

// book:add(sheet)
static int add_sheet(lua_State *lua) {
    struct book *book = check_book(lua);
    luaL_checktype(lua, 2, LUA_TTABLE);
    lua_settop(lua, 2);
    enum { TITLES = 3, ROWS = 4 };
    lua_getfield(lua, 2, "columns");
    lua_getfield(lua, 2, "rows");
    lua_getfield(lua, 2, "name");
    luaL_checktype(lua, TITLES, LUA_TTABLE);
    size_t columns = (size_t)lua_rawlen(lua, TITLES);
    luaL_argcheck(lua, columns <= MOST_COLUMNS, 2, "too many columns");
    struct sheet sheet = {.columns = (int)columns, .cut = 0};
    const char *name = luaL_checkstring(lua, -1);
    struct hush hush;
    hush_begin(&hush);
    sheet.worksheet = workbook_add_worksheet(book->workbook, name);
    hush_end(&hush);
    if (sheet.worksheet == NULL && hush.reason != 0 && hush.reason != ENOMEM) {
        return fail_with(lua, book, unwritten, strerror(hush.reason));
    }
    if (hush.lost_memory) return fail_without_memory(lua, book);
    if (sheet.worksheet == NULL) return luaL_error(lua, "no sheet can be called %s", name);
    sheet.formats = push_buffer(lua, columns * sizeof *sheet.formats);
    sheet.widths = push_buffer(lua, columns * sizeof *sheet.widths);
    take_formats(lua, book, &sheet);
    write_header(lua, &sheet, TITLES, book->header);
    lua_Integer rows = write_rows(lua, &sheet, ROWS);
    lua_Integer held = rows < MOST_ROWS ? rows : MOST_ROWS - 1;
    add_colours(lua, &sheet, (lxw_row_t)held);
    lay_out(&sheet, (lxw_row_t)held);
    if (sheet.lost_memory || errno == ENOMEM) return fail_without_memory(lua, book);
    lua_pushinteger(lua, sheet.cut);
    lua_pushinteger(lua, rows - held);
    return 2;
}

// book:close()
static int close_book(lua_State *lua) {
    struct book *book = check_book(lua);
    struct problem problem;
    struct hush hush;
    hush_begin(&hush);
    lxw_error error = workbook_close(book->workbook);
    hush_end(&hush);
    book->workbook = NULL;
    bool has_other_reason = error != LXW_NO_ERROR && hush.reason != 0 && hush.reason != ENOMEM;
    if (hush.lost_memory && !has_other_reason) return fail_without_memory(lua, book);
    if (error == LXW_NO_ERROR && stream_errors() != book->stream_errors) {
        return fail_with(lua, book, unwritten,
                         "a temporary file in its folder is incomplete (is the disk full?)");
    }
    if (error != LXW_NO_ERROR) {
        const char *reason = hush.reason != 0 ? strerror(hush.reason) : lxw_strerror(error);
        return fail_with(lua, book, unwritten, reason);
    }
    bool is_written = file_stage_commit(&book->stage, false, &problem);
    drop_book(book);
    return is_written ? push_true(lua) : push_failed(lua, problem.text);
}

int luaopen_core_xlsx(lua_State *lua) {
    static const luaL_Reg functions[] = {{"open", open_book}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"add", add_sheet}, {"close", close_book}, {"__gc", drop}, {"__close", drop}, {NULL, NULL}};
    make_type(lua, book_type, methods);
    luaL_newlib(lua, functions);
    return 1;
}
