// Reads benchmark files to rows, in parallel; see rows.h. rows_header.c reads a file's header, rows_line.c
// its lines.
//
// A file is mapped and cut into pieces at line ends. The lines of all pieces are counted first, which gives
// the line number and the index among the rows where each piece begins; then the pieces are parsed into one
// array.
#include "rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/csv.h"
#include "codec/number.h"
#include "rows_reading.h"
#include "system/huge_pages.h"
#include "system/parallel.h"

enum { PIECE_SIZE = 1 << 20, HEADER_LINES = 1 };

struct source {
    struct rows_source source;
    struct file_map map;
    struct csv_text body; // after the header
};

// Consecutive lines of one file.
struct piece {
    const struct source *source;
    struct csv_text text;
    size_t first_line, first_row, lines;
    size_t missing, empty;
    bool failed;
    struct problem problem;
};

// ---- a file

// The number between `prefix`, with which `text` begins, and the next dot. Returns the text after the dot, or
// NULL.
static const char *number_after(const char *text, const char *prefix, uint32_t *number) {
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0) return NULL;
    const char *dot = strchr(text + length, '.');
    uint64_t value;
    if (dot == NULL || !number_parse_unsigned(text + length, dot, UINT16_MAX, &value)) return NULL;
    *number = (uint32_t)value;
    return dot + 1;
}

// A source with the N and M of benchmark.tpN.nodesM.ARCH.csv, or benchmark.tpN.ARCH.csv (M is 1).
static struct rows_source source_of(const char *path) {
    struct rows_source source = {.path = path, .nodes = 1};
    const char *slash = strrchr(path, '/');
    const char *rest = number_after(slash == NULL ? path : slash + 1, "benchmark.tp", &source.world_size);
    if (rest != NULL) number_after(rest, "nodes", &source.nodes);
    return source;
}

// Whether the last line may be a part of a line, with another time.
static bool may_be_cut_off(const struct csv_text *text) {
    if (text->begin == text->end || text->end[-1] == '\n') return false;
    const char *last = text->end;
    while (last > text->begin && last[-1] != ',' && last[-1] != '\n') last--;
    return !number_is_precise(last, text->end);
}

static bool open_source(struct source *source, const char *path, const struct columns *columns,
                        struct problem *problem) {
    *source = (struct source){.source = source_of(path)};
    if (!file_open(path, &source->map, problem)) return false;
    struct csv_text text = {source->map.data, source->map.data + source->map.size, false}, header;
    struct problem detail;
    if (!csv_begin(&text, &detail)) return problem_set(problem, "%s: %s", path, detail.text);
    if (!csv_line(&text, &header)) {
        return problem_set(
            problem, "%s: is empty; a line with the names of the columns, then rows, are required", path);
    }
    if (may_be_cut_off(&text)) {
        return problem_set(
            problem, "%s: the last line has no line end, so it may be cut off; complete or end it", path);
    }
    source->body = text;
    return rows_read_header(&source->source, &header, columns, problem);
}

// ---- a piece

// In blocks that a byte can count, which compilers turn into vector code.
static void count_lines(struct piece *piece) {
    size_t lines = 0;
    const char *at = piece->text.begin, *end = piece->text.end;
    for (; end - at >= UINT8_MAX; at += UINT8_MAX) {
        uint8_t block = 0;
        for (int i = 0; i < UINT8_MAX; i++) block = (uint8_t)(block + (at[i] == '\n'));
        lines += block;
    }
    for (; at < end; at++) lines += *at == '\n';
    if (piece->text.end > piece->text.begin && piece->text.end[-1] != '\n') lines++;
    piece->lines = lines;
}

// Parses a piece to its part of `rows`. A line without a row (empty, or a missing time) has a time_us of 0.
static void parse_piece(struct piece *piece, const struct lists *lists, struct rows *rows) {
    struct line_parser parser = line_parser_begin(&piece->source->source, lists, &piece->problem);
    struct csv_text text = piece->text, line;
    for (size_t i = 0; csv_line(&text, &line); i++) {
        struct row *row = &rows->row[piece->first_row + i];
        parser.line = piece->first_line + i;
        if (line.begin == line.end) {
            row->time_us = 0;
            piece->empty++;
            continue;
        }
        if (!line_parser_take(&parser, &line)) {
            piece->failed = true;
            return;
        }
        parser.row.line = (uint32_t)parser.line;
        *row = parser.row;
        if (rows->detail != NULL) rows->detail[piece->first_row + i] = parser.detail;
        piece->missing += row->time_us == 0;
    }
}

// ---- all pieces

struct reading {
    struct piece *pieces;
    const struct lists *lists;
    struct rows *rows;
};

static void count_task(void *context, size_t index) {
    count_lines(&((struct reading *)context)->pieces[index]);
}

static void parse_task(void *context, size_t index) {
    struct reading *reading = context;
    parse_piece(&reading->pieces[index], reading->lists, reading->rows);
}

// The number of threads: one for each PIECE_SIZE of input, so that small input uses one.
static size_t count_threads(const struct piece *pieces, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) size += (size_t)(pieces[i].text.end - pieces[i].text.begin);
    return 1 + size / PIECE_SIZE;
}

// Cuts the bodies of all sources at line ends. Returns the pieces (the caller frees them), or NULL.
static struct piece *cut(const struct source *sources, size_t source_count, size_t *count) {
    size_t limit = 0;
    for (size_t i = 0; i < source_count; i++) limit += sources[i].map.size / PIECE_SIZE + 1;
    struct piece *pieces = calloc(limit, sizeof *pieces);
    if (pieces == NULL) return NULL;
    *count = 0;
    for (size_t i = 0; i < source_count; i++) {
        struct csv_text rest = sources[i].body;
        do {
            struct csv_text part = rest;
            if (part.end - part.begin > PIECE_SIZE) {
                const char *newline =
                    memchr(part.begin + PIECE_SIZE, '\n', (size_t)(part.end - part.begin) - PIECE_SIZE);
                if (newline != NULL) part.end = newline + 1;
            }
            pieces[(*count)++] = (struct piece){.source = &sources[i], .text = part};
            rest.begin = part.end;
        } while (rest.begin < rest.end);
    }
    return pieces;
}

// ---- all files

static bool allocate_rows(struct rows *rows, const struct source *sources, size_t source_count,
                          size_t lines) {
    bool detail = false;
    for (size_t i = 0; i < source_count; i++) detail |= sources[i].source.header.ours;
    rows->row = large_allocate((lines + 1) * sizeof *rows->row);
    if (detail) rows->detail = large_allocate((lines + 1) * sizeof *rows->detail);
    rows->files = calloc(source_count + 1, sizeof *rows->files);
    if (rows->row == NULL || rows->files == NULL || (detail && rows->detail == NULL)) return false;
    for (size_t i = 0; i < source_count; i++) {
        rows->files[i].path = strdup(sources[i].source.path);
        if (rows->files[i].path == NULL) return false;
        rows->file_count++;
    }
    return true;
}

// Numbers the lines and rows of the pieces; returns the number of lines.
static size_t number_pieces(struct piece *pieces, size_t count) {
    size_t lines = 0;
    for (size_t i = 0; i < count; i++) {
        bool same_file = i > 0 && pieces[i].source == pieces[i - 1].source;
        pieces[i].first_line = same_file ? pieces[i - 1].first_line + pieces[i - 1].lines : HEADER_LINES + 1;
        pieces[i].first_row = lines;
        lines += pieces[i].lines;
    }
    return lines;
}

// Closes the gaps of lines without a row, and records which rows are of which file.
static void settle(struct rows *rows, const struct source *sources, const struct piece *pieces,
                   size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct rows_file *file = &rows->files[pieces[i].source - sources];
        bool same_file = i > 0 && pieces[i].source == pieces[i - 1].source;
        if (!same_file) file->first = rows->count;
        size_t first = pieces[i].first_row, lines = pieces[i].lines;
        size_t kept = lines - pieces[i].missing - pieces[i].empty;
        if (kept == lines && first == rows->count) {
            rows->count += lines;
        } else {
            for (size_t j = first; j < first + lines; j++) {
                if (rows->row[j].time_us == 0) continue;
                rows->row[rows->count] = rows->row[j];
                if (rows->detail != NULL) rows->detail[rows->count] = rows->detail[j];
                rows->count++;
            }
        }
        file->count += kept;
        file->missing += pieces[i].missing;
    }
}

// Checks that all rows of a file have one TP size and number of nodes, if its name has none.
static bool check_placements(const struct rows *rows, const struct source *sources, struct problem *problem) {
    for (size_t i = 0; i < rows->file_count; i++) {
        if (sources[i].source.world_size != 0) continue;
        const struct row *row = &rows->row[rows->files[i].first];
        for (size_t j = 1; j < rows->files[i].count; j++) {
            const struct cell_key *one = &row[0].key, *other = &row[j].key;
            bool sizes_differ = other->world_size != one->world_size;
            if (!sizes_differ && other->nodes == one->nodes) continue;
            return problem_set(problem, "%s:%u: %s is %u, but %u in line %u; put each into a file of its own",
                               sources[i].source.path, row[j].line, sizes_differ ? "world_size" : "nodes",
                               sizes_differ ? other->world_size : other->nodes,
                               sizes_differ ? one->world_size : one->nodes, row[0].line);
        }
    }
    return true;
}

static bool read_pieces(struct rows *rows, const struct source *sources, size_t source_count,
                        const struct lists *lists, struct problem *problem) {
    size_t count;
    struct piece *pieces = cut(sources, source_count, &count);
    if (pieces == NULL) return problem_set(problem, "out of memory");
    struct reading reading = {pieces, lists, rows};
    parallel_run(count, count_threads(pieces, count), count_task, &reading);
    bool ok = allocate_rows(rows, sources, source_count, number_pieces(pieces, count));
    if (!ok) problem_set(problem, "out of memory");
    if (ok) parallel_run(count, count_threads(pieces, count), parse_task, &reading);
    for (size_t i = 0; ok && i < count; i++) {
        if (!pieces[i].failed) continue;
        *problem = pieces[i].problem;
        ok = false;
    }
    if (ok) settle(rows, sources, pieces, count);
    free(pieces);
    return ok && check_placements(rows, sources, problem);
}

struct rows *rows_read(const char *const *paths, size_t count, const struct lists *lists,
                       struct problem *problem) {
    struct source *sources = calloc(count + 1, sizeof *sources);
    struct rows *rows = calloc(1, sizeof *rows);
    bool ok = sources != NULL && rows != NULL;
    if (!ok) problem_set(problem, "out of memory");
    for (size_t i = 0; ok && i < count; i++) {
        ok = open_source(&sources[i], paths[i], &lists->columns, problem);
    }
    ok = ok && read_pieces(rows, sources, count, lists, problem);
    for (size_t i = 0; sources != NULL && i < count; i++) file_close(&sources[i].map);
    free(sources);
    if (ok) return rows;
    rows_free(rows);
    return NULL;
}

void rows_free(struct rows *rows) {
    if (rows == NULL) return;
    for (size_t i = 0; i < rows->file_count; i++) free(rows->files[i].path);
    free(rows->files);
    free(rows->row);
    free(rows->detail);
    free(rows);
}

const struct rows_file *rows_file_of(const struct rows *rows, size_t index) {
    for (size_t i = 0; i < rows->file_count; i++) {
        if (index - rows->files[i].first < rows->files[i].count) return &rows->files[i];
    }
    return NULL;
}
