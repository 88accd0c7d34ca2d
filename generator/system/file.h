// Files: mapped for reading, and written completely or not at all.
#ifndef GENTABLES_FILE_H
#define GENTABLES_FILE_H

#include <stddef.h>

#include "base/problem.h"

struct file_map {
    const char *data; // not NUL-terminated
    size_t size;
};

// Maps the file at `path` for reading. If the file is replaced by a rename, the map keeps the old content.
// On failure errno is that of the failed call; 0 if the path is not that of a file.
bool file_open(const char *path, struct file_map *map, struct problem *problem);
void file_close(struct file_map *map);

// Replaces the file at `path` by these bytes: writes a temporary file beside it, and renames that. With
// `sync` the bytes are on the disk before the rename. On failure the old file is unchanged and the temporary
// file is removed.
bool file_write(const char *path, const char *data, size_t size, bool sync, struct problem *problem);

struct file_text {
    const char *path, *data;
    size_t size;
};

enum { MOST_FILES = 512 };

// Replaces up to MOST_FILES files of one folder. All are written under temporary names, with `sync` to the
// disk, before the first is renamed, so that a full disk changes none. A kill between two renames can leave
// some files new and some old.
bool file_write_all(const struct file_text files[], size_t count, bool sync, struct problem *problem);

// A file that is written piece by piece, and then replaces `path`. Each stage that was opened must be
// committed or dropped. A link stays: the file that it leads to is replaced. A device or a pipe is written to
// at once, and never replaced.
//
// Where the file system allows it, the file has no name until it is complete, so that no end of the process
// leaves it. Else, and between its last byte and the renaming, it has a temporary name beside `path`, which
// signals remove (cleanup.h).
struct file_stage {
    int file;         // open to write; -1: none
    const char *path; // as given, for messages
    char *target;     // the file that is replaced: `path`, or where that link leads
    char *temporary;  // its name until then; NULL: a device or a pipe
    bool is_named;    // whether it has that name already
};

// `path` must live until the end of the stage.
bool file_stage_open(struct file_stage *stage, const char *path, struct problem *problem);
// A name by which a library can open the file of a stage that has a `temporary`: `name` or that one.
enum { STAGE_NAME_SIZE = 32 };
const char *file_stage_name(const struct file_stage *stage, char name[STAGE_NAME_SIZE]);
bool file_stage_write(struct file_stage *stage, const char *data, size_t size, struct problem *problem);
// Renames the file to `path`, with the mode of the file that it replaces; with `sync` its bytes are on the
// disk before that. On failure the old file is unchanged and the temporary file is removed.
bool file_stage_commit(struct file_stage *stage, bool sync, struct problem *problem);
// Removes the temporary file. Does nothing to a stage that has ended.
void file_stage_drop(struct file_stage *stage);

// Whether the file at `path` holds exactly these bytes.
bool file_holds(const char *path, const char *data, size_t size);

#endif
