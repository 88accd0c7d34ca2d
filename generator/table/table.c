// The canonical table: writes, reads, and finds cells; see table.h. choose.c makes it from rows; table_lua.c
// is its Lua side.
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/csv.h"
#include "codec/number.h"
#include "system/huge_pages.h"

#define OWN_COLUMNS                                                                                          \
    "arch,world_size,fusion,dtype,op,mode,hidden_size,num_tokens,strategy,time (us),"                        \
    "runner_up,margin,state,confidence,expected loss,worst loss (us),basis"
#define MORE_COLUMNS     ",size,splits" // in tables with splits, or with sizes without tokens and hidden size
#define NODES_COLUMN     ",nodes"       // in tables with cells of several nodes
#define INTERVAL_COLUMNS ",low (us),high (us)" // in tables with predicted cells: of their times

// Earlier tables have no state and no losses, but a regret, which is not read; the first have no basis.
static const char known_columns[] = OWN_COLUMNS MORE_COLUMNS NODES_COLUMN INTERVAL_COLUMNS ",regret";
// The words of the column `basis`.
static const char *const bases[BASES] = {"measured", "derived", "predicted"};
static const char unmeasured[] = "unmeasured";
static const double SMALLEST = 5e-5; // losses and probabilities below this are written as 0

const char *const table_state_names[STATES] = {"", "certain", "tie", "uncertain"};

const struct cell table_unmeasured = {.time_us = NAN,
                                      .margin = NAN,
                                      .confidence = NAN,
                                      .expected = NAN,
                                      .worst = NAN,
                                      .worst_us = NAN,
                                      .bound_us = NAN,
                                      .low_us = NAN,
                                      .high_us = NAN,
                                      .strategy = NAME_NONE,
                                      .runner_up = NAME_NONE};

void table_free(struct table *table) {
    if (table == NULL) return;
    grid_free(&table->grid);
    free(table->cells);
    for (size_t i = 0; i < 2; i++) free(table->judged[i]);
    free(table);
}

const struct cell *table_find(struct table *table, const struct cell_key *key) {
    size_t index = grid_find(&table->grid, key);
    return index == GRID_NO_CELL ? NULL : &table->cells[index];
}

// ---- cells to text

static char *put(char *out, const char *text, size_t length) {
    memcpy(out, text, length);
    return out + length;
}

static char *put_name(char *out, const struct names *names, uint8_t index) {
    out = put(out, names->name[index], names->length[index]);
    *out++ = ',';
    return out;
}

// Writes a share; nothing for NAN, as in a table of another program's choices.
static char *put_share(char *out, double share) {
    return isnan(share) ? out : number_print_fixed4(out, share);
}

// The cell's own fields, from the strategy on.
static char *put_cell(char *out, const struct cell *cell, const struct lists *lists) {
    static const char nothing_else[] = ",,,,,,,,";
    if (cell->strategy == NAME_NONE) {
        out = put(out, unmeasured, strlen(unmeasured));
        return put(out, nothing_else, strlen(nothing_else));
    }
    out = put_name(out, &lists->strategies, cell->strategy);
    out = put_share(out, cell->time_us);
    *out++ = ',';
    if (cell->runner_up != NAME_NONE) {
        out = put(out, lists->strategies.name[cell->runner_up], lists->strategies.length[cell->runner_up]);
    }
    *out++ = ',';
    out = put_share(out, cell->margin);
    *out++ = ',';
    out = put(out, table_state_names[cell->state], strlen(table_state_names[cell->state]));
    const double numbers[] = {cell->confidence, cell->expected, cell->worst_us};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *out++ = ',';
        out = put_share(out, fabs(numbers[i]) < SMALLEST ? 0 : numbers[i]);
    }
    *out++ = ',';
    if (!isnan(cell->time_us)) { // a table of another program has no times
        out = put(out, bases[cell->basis], strlen(bases[cell->basis]));
    }
    return out;
}

static bool block_needs_more(const struct grid_block *block) {
    return block->has_no_shape || block->splits != 0;
}

// The optional columns of a table.
struct optional_columns {
    bool more, nodes, interval;
};

static struct optional_columns find_columns(const struct table *table) {
    struct optional_columns columns = {false, false, false};
    for (size_t i = 0; i < table->grid.block_count; i++) {
        columns.more |= block_needs_more(&table->grid.blocks[i]);
        columns.nodes |= table->grid.blocks[i].nodes > 1;
    }
    for (size_t i = 0; i < table->grid.cell_count && !columns.interval; i++) {
        columns.interval = table->cells[i].basis == BASIS_PREDICTED;
    }
    return columns;
}

// Writes tokens and hidden size, each with a comma; only the commas if the block has sizes only.
static char *put_shape(char *out, const struct grid_block *block, uint32_t hidden_size, uint32_t tokens) {
    if (!block->has_no_shape) out = number_print_unsigned(out, hidden_size);
    *out++ = ',';
    if (!block->has_no_shape) out = number_print_unsigned(out, tokens);
    *out++ = ',';
    return out;
}

static char *put_more(char *out, const struct grid_block *block, uint32_t size_bytes) {
    *out++ = ',';
    if (block->has_no_shape) out = number_print_unsigned(out, size_bytes);
    *out++ = ',';
    return splits_print(out, block->splits);
}

static char *put_nodes(char *out, const struct grid_block *block) {
    *out++ = ',';
    return number_print_unsigned(out, block->nodes);
}

static char *put_interval(char *out, const struct cell *cell) {
    *out++ = ',';
    out = put_share(out, cell->low_us);
    *out++ = ',';
    return put_share(out, cell->high_us);
}

// Writes the beginning of all lines of a block and fusion. Returns its length.
static size_t put_block(char *out, const char *arch, const struct grid_block *block, size_t fusion,
                        const struct lists *lists) {
    char *begin = out;
    out = put(out, arch, strlen(arch));
    *out++ = ',';
    out = number_print_unsigned(out, block->world_size);
    *out++ = ',';
    out = put_name(out, &lists->fusions, block->fusion[fusion]);
    out = put_name(out, &lists->dtypes, block->dtype);
    out = put_name(out, &lists->ops, block->op);
    out = put_name(out, &lists->modes, block->mode);
    return (size_t)(out - begin);
}

static char *put_cells(char *out, const struct table *table, const struct grid_block *block, const char *arch,
                       size_t fusion, const struct lists *lists, struct optional_columns columns) {
    char beginning[8 * UINT8_MAX];
    size_t length = put_block(beginning, arch, block, fusion, lists);
    const struct cell *cell =
        &table->cells[block->first_cell] + fusion * block->hidden_sizes.count * block->num_tokens.count;
    for (size_t h = 0; h < block->hidden_sizes.count; h++) {
        for (size_t t = 0; t < block->num_tokens.count; t++) {
            out = put(out, beginning, length);
            out = put_shape(out, block, block->hidden_sizes.value[h], block->num_tokens.value[t]);
            out = put_cell(out, cell, lists);
            if (columns.more) out = put_more(out, block, block->num_tokens.value[t]);
            if (columns.nodes) out = put_nodes(out, block);
            if (columns.interval) out = put_interval(out, cell);
            cell++;
            *out++ = '\n';
        }
    }
    return out;
}

static size_t longest_name(const struct names *names) {
    size_t longest = strlen(unmeasured);
    for (size_t i = 0; i < names->count; i++) {
        if (names->length[i] > longest) longest = names->length[i];
    }
    return longest;
}

char *table_text(const struct table *table, const char *arch, const struct lists *lists, size_t *size) {
    enum { NUMBERS_IN_A_LINE = 12 };
    struct optional_columns columns = find_columns(table);
    size_t line = strlen(arch) + longest_name(&lists->fusions) + longest_name(&lists->dtypes) +
                  longest_name(&lists->ops) + longest_name(&lists->modes) +
                  2 * longest_name(&lists->strategies) + NUMBERS_IN_A_LINE * NUMBER_TEXT_SIZE +
                  sizeof known_columns + SPLITS_TEXT_SIZE;
    char *text = large_allocate((table->grid.cell_count + 1) * line), *out = text;
    if (text == NULL) return NULL;
    out = put(out, OWN_COLUMNS, strlen(OWN_COLUMNS));
    if (columns.more) out = put(out, MORE_COLUMNS, strlen(MORE_COLUMNS));
    if (columns.nodes) out = put(out, NODES_COLUMN, strlen(NODES_COLUMN));
    if (columns.interval) out = put(out, INTERVAL_COLUMNS, strlen(INTERVAL_COLUMNS));
    *out++ = '\n';
    for (size_t i = 0; i < table->grid.block_count; i++) {
        const struct grid_block *block = &table->grid.blocks[i];
        for (size_t fusion = 0; fusion < block->fusion_count; fusion++) {
            out = put_cells(out, table, block, arch, fusion, lists, columns);
        }
    }
    *size = (size_t)(out - text);
    return text;
}

// ---- text to cells

enum table_column { // in the order of known_columns
    TABLE_ARCH,
    TABLE_WORLD_SIZE,
    TABLE_FUSION,
    TABLE_DTYPE,
    TABLE_OP,
    TABLE_MODE,
    TABLE_HIDDEN_SIZE,
    TABLE_NUM_TOKENS,
    TABLE_STRATEGY,
    TABLE_TIME,
    TABLE_RUNNER_UP,
    TABLE_MARGIN,
    TABLE_STATE,
    TABLE_CONFIDENCE,
    TABLE_EXPECTED,
    TABLE_WORST,
    TABLE_BASIS,
    TABLE_SIZE,
    TABLE_SPLITS,
    TABLE_NODES,
    TABLE_LOW,
    TABLE_HIGH,
    TABLE_REGRET,
    TABLE_COLUMNS,
};

struct table_line {
    struct cell_key key;
    struct cell cell;
};

struct table_reader {
    const char *path;
    const struct lists *lists;
    size_t line_number;
    struct table_line *lines;
    size_t count, capacity, columns;
    uint8_t order[TABLE_COLUMNS]; // the column at each place of a line
    char *arch;
    struct problem *problem;
};

static bool fail_at(struct table_reader *reader, const char *what) {
    return problem_set(reader->problem, "%s:%zu: %s", reader->path, reader->line_number, what);
}

static bool take_name(const struct csv_text *cell, const struct names *names, uint8_t *index) {
    *index = names_find(names, cell->begin, cell->end);
    return *index != NAME_NONE;
}

static bool take_count(const struct csv_text *cell, uint64_t limit, uint32_t *value) {
    uint64_t count;
    if (!number_parse_unsigned(cell->begin, cell->end, limit, &count) || count == 0) return false;
    *value = (uint32_t)count;
    return true;
}

static bool take_share(const struct csv_text *cell, double *value) {
    *value = NAN;
    return cell->begin == cell->end || number_parse(cell->begin, cell->end, value);
}

static bool take_state(const struct csv_text *cell, enum state *state) {
    for (*state = STATE_NONE; *state < STATES; (*state)++) {
        if (csv_equals(cell, table_state_names[*state])) return true;
    }
    return false;
}

// The basis; none in tables of other programs.
static bool take_basis(const struct csv_text *cell, enum basis *basis) {
    *basis = BASIS_MEASURED;
    if (csv_equals(cell, "")) return true;
    for (; *basis < BASES; (*basis)++) {
        if (csv_equals(cell, bases[*basis])) return true;
    }
    return false;
}

static bool take_arch(struct table_reader *reader, const struct csv_text *cell) {
    size_t length = (size_t)(cell->end - cell->begin);
    if (length == 0 || length >= 64) return false;
    if (reader->arch[0] == '\0') {
        memcpy(reader->arch, cell->begin, length);
        reader->arch[length] = '\0';
    }
    return strlen(reader->arch) == length && memcmp(reader->arch, cell->begin, length) == 0;
}

// Tokens and hidden size, or neither and a size.
static bool take_shape(const struct csv_text *cells, struct cell_key *key) {
    const struct csv_text *hidden_size = &cells[TABLE_HIDDEN_SIZE], *tokens = &cells[TABLE_NUM_TOKENS];
    const struct csv_text *size = &cells[TABLE_SIZE];
    if (hidden_size->begin != hidden_size->end || tokens->begin != tokens->end) {
        return take_count(hidden_size, INT32_MAX, &key->hidden_size) &&
               take_count(tokens, INT32_MAX, &key->num_tokens);
    }
    key->hidden_size = HIDDEN_SIZE_NONE;
    return take_count(size, HIDDEN_SIZE_NONE - 1, &key->num_tokens);
}

// The number of nodes; without a column of it: 1. The key has its number of ranks.
static bool take_nodes(const struct csv_text *cell, struct cell_key *key) {
    uint32_t nodes = 1;
    bool is_number = cell->begin == NULL || take_count(cell, UINT16_MAX, &nodes);
    key->nodes = (uint16_t)nodes;
    return is_number && key->world_size % nodes == 0;
}

static bool take_cells(struct table_reader *reader, const struct csv_text *cells, struct table_line *line) {
    const struct lists *lists = reader->lists;
    const struct csv_text *strategy = &cells[TABLE_STRATEGY], *runner_up = &cells[TABLE_RUNNER_UP];
    uint32_t world_size = 0;
    line->cell = table_unmeasured;
    if (!take_arch(reader, &cells[TABLE_ARCH]))
        return fail_at(reader, "another arch; one table is of one arch");
    bool ok = take_count(&cells[TABLE_WORLD_SIZE], UINT16_MAX, &world_size) && take_shape(cells, &line->key);
    if (!ok) return fail_at(reader, "world_size, hidden_size and num_tokens are whole numbers above 0");
    line->key.world_size = (uint16_t)world_size;
    ok = take_name(&cells[TABLE_FUSION], &lists->fusions, &line->key.fusion) &&
         take_name(&cells[TABLE_DTYPE], &lists->dtypes, &line->key.dtype) &&
         take_name(&cells[TABLE_OP], &lists->ops, &line->key.op) &&
         take_name(&cells[TABLE_MODE], &lists->modes, &line->key.mode);
    if (!ok) return fail_at(reader, "unknown fusion, dtype, op or mode");
    if (!splits_parse(cells[TABLE_SPLITS].begin, cells[TABLE_SPLITS].end, &line->key.splits)) {
        return fail_at(reader, "splits are weights from 0 to 14 such as 3:1, not all 0");
    }
    if (!take_nodes(&cells[TABLE_NODES], &line->key)) {
        return fail_at(reader, "nodes is a whole number above 0 that divides world_size");
    }
    if (csv_equals(strategy, unmeasured)) return true;
    if (!take_name(strategy, &lists->strategies, &line->cell.strategy))
        return fail_at(reader, "unknown strategy");
    if (runner_up->begin != runner_up->end &&
        !take_name(runner_up, &lists->strategies, &line->cell.runner_up)) {
        return fail_at(reader, "unknown runner_up");
    }
    ok = take_share(&cells[TABLE_TIME], &line->cell.time_us) && !(line->cell.time_us <= 0) &&
         take_share(&cells[TABLE_MARGIN], &line->cell.margin) &&
         take_share(&cells[TABLE_CONFIDENCE], &line->cell.confidence) &&
         take_share(&cells[TABLE_EXPECTED], &line->cell.expected) &&
         take_share(&cells[TABLE_WORST], &line->cell.worst_us) &&
         take_state(&cells[TABLE_STATE], &line->cell.state);
    if (!ok)
        return fail_at(reader, "a broken number or state; a number may be missing, a time is above 0, "
                               "a state is certain, tie or uncertain");
    if (!take_basis(&cells[TABLE_BASIS], &line->cell.basis)) {
        return fail_at(reader, "a basis is measured, derived or predicted");
    }
    return (take_share(&cells[TABLE_LOW], &line->cell.low_us) &&
            take_share(&cells[TABLE_HIGH], &line->cell.high_us)) ||
           fail_at(reader, "the interval of a predicted time is two numbers");
}

static bool take_line(struct table_reader *reader, const struct csv_text *text, struct table_line *line) {
    struct csv_text cells[TABLE_COLUMNS] = {{NULL, NULL, false}};
    struct problem detail;
    const char *at = text->begin;
    for (size_t i = 0; i < reader->columns; i++, at++) {
        if (!csv_field(&at, text->end, &cells[reader->order[i]], &detail))
            return fail_at(reader, detail.text);
        if ((at == text->end) != (i == reader->columns - 1)) return fail_at(reader, "wrong number of fields");
    }
    return take_cells(reader, cells, line);
}

// The column of this name; TABLE_COLUMNS: none.
static size_t column_of(const struct csv_text *name) {
    const char *at = known_columns;
    for (size_t column = 0; column < TABLE_COLUMNS; column++) {
        size_t length = strcspn(at, ",");
        bool is_long = (size_t)(name->end - name->begin) == length;
        if (is_long && memcmp(name->begin, at, length) == 0) return column;
        at += length + 1;
    }
    return TABLE_COLUMNS;
}

// Reads the order of the columns; false: one is unknown, twice there, or missing.
static bool read_table_header(struct table_reader *reader, const struct csv_text *line) {
    bool has[TABLE_COLUMNS] = {false};
    const char *at = line->begin;
    struct csv_text name;
    struct problem ignored;
    do {
        if (!csv_field(&at, line->end, &name, &ignored)) return false;
        size_t column = column_of(&name);
        if (column == TABLE_COLUMNS || has[column]) return false;
        has[column] = true;
        reader->order[reader->columns++] = (uint8_t)column;
    } while (at++ != line->end);
    for (size_t column = TABLE_ARCH; column <= TABLE_MARGIN; column++) {
        if (!has[column]) return false;
    }
    return has[TABLE_CONFIDENCE];
}

static bool read_lines(struct table_reader *reader, struct csv_text text) {
    struct csv_text line;
    struct problem detail;
    reader->line_number = 1;
    if (!csv_begin(&text, &detail)) return fail_at(reader, detail.text);
    bool there = csv_line(&text, &line);
    if (!there || !read_table_header(reader, &line)) {
        return problem_set(reader->problem, "%s:1: is no table; a table begins with %s", reader->path,
                           OWN_COLUMNS);
    }
    while (csv_line(&text, &line)) {
        reader->line_number++;
        if (reader->count == reader->capacity) {
            size_t capacity = reader->capacity == 0 ? 1024 : 2 * reader->capacity;
            struct table_line *lines = realloc(reader->lines, capacity * sizeof *lines);
            if (lines == NULL) return fail_at(reader, "out of memory");
            reader->lines = lines;
            reader->capacity = capacity;
        }
        if (!take_line(reader, &line, &reader->lines[reader->count])) return false;
        reader->count++;
    }
    return true;
}

static bool enter_lines(struct table_reader *reader, struct table *table) {
    for (size_t i = 0; i < reader->count; i++) {
        if (!grid_add(&table->grid, &reader->lines[i].key)) return fail_at(reader, "out of memory");
    }
    if (!grid_close(&table->grid, reader->problem)) return false;
    size_t cells = table->grid.cell_count;
    table->cells = malloc((cells + 1) * sizeof *table->cells);
    uint8_t *taken = calloc(cells + 1, sizeof *taken);
    bool ok = (table->cells != NULL && taken != NULL) || fail_at(reader, "out of memory");
    for (size_t i = 0; ok && i < cells; i++) table->cells[i] = table_unmeasured;
    for (size_t i = 0; ok && i < reader->count; i++) {
        size_t index = grid_find(&table->grid, &reader->lines[i].key);
        reader->line_number = i + 2;
        ok = !taken[index] || fail_at(reader, "a cell that occurs before; list each cell once");
        taken[index] = 1;
        table->cells[index] = reader->lines[i].cell;
    }
    free(taken);
    return ok;
}

struct table *table_parse(const char *path, const char *text, size_t size, const struct lists *lists,
                          char arch[64], struct problem *problem) {
    struct table_reader reader = {.path = path, .lists = lists, .arch = arch, .problem = problem};
    struct table *table = calloc(1, sizeof *table);
    arch[0] = '\0';
    bool ok = table != NULL || problem_set(problem, "out of memory");
    ok =
        ok && read_lines(&reader, (struct csv_text){text, text + size, false}) && enter_lines(&reader, table);
    free(reader.lines);
    if (ok) return table;
    table_free(table);
    return NULL;
}
