// Files as the generator needs them: mapped to read, written whole or not at all, folders listed and made.
#ifndef GENTABLES_FILE_H
#define GENTABLES_FILE_H

#include <stddef.h>

#include "base/problem.h"

struct file_map {
    const char *data; // not NUL-terminated
    size_t size;
};

// Maps the file at `path` to read. A file that is replaced by rename meanwhile keeps its old content.
bool file_open(const char *path, struct file_map *map, struct problem *problem);
void file_close(struct file_map *map);

// Replaces the file at `path` by these bytes: written to a temporary name beside it, then renamed. With
// `sync` they are on the disk before that. Where it fails, what was there is still there and the temporary
// file is gone.
bool file_write(const char *path, const char *data, size_t size, bool sync, struct problem *problem);

struct file_text {
    const char *path, *data;
    size_t size;
};

enum { MOST_FILES = 512 };

// Replaces up to MOST_FILES files of one folder: all are whole under temporary names (with `sync` on the
// disk) before any takes its place, so that a full disk changes none. A kill between two renames can still
// leave some new and some old.
bool file_write_all(const struct file_text files[], size_t count, bool sync, struct problem *problem);

// A file that is written piece by piece under a temporary name beside `path`, which it then replaces. Every
// stage that was opened is either committed or dropped.
struct file_stage {
    int file; // open to write; -1: none
    const char *path;
    char *temporary;
};

// `path` has to stay until the end of the stage.
bool file_stage_open(struct file_stage *stage, const char *path, struct problem *problem);
bool file_stage_write(struct file_stage *stage, const char *data, size_t size, struct problem *problem);
// Puts the file in its place, with the mode of what it replaces; with `sync` it is on the disk before. Where
// that fails, what was there is still there and the temporary file is gone.
bool file_stage_commit(struct file_stage *stage, bool sync, struct problem *problem);
// Takes the temporary file away. Does nothing to a stage that has ended.
void file_stage_drop(struct file_stage *stage);

// Whether the file at `path` holds exactly these bytes.
bool file_holds(const char *path, const char *data, size_t size);

#endif
