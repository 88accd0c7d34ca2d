// The processes of a session; see process_session.h.
#include "process_session.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PASSES = 500, PASS_NS = 2000000 }; // a killed process needs a moment to end

struct entry {
    pid_t pid, session;
    char state;    // R, S, T...
    char name[32]; // of the program
};

// Reads the process of this name in /proc. False if it is no process, or has ended.
static bool read_entry(const char *name, struct entry *entry) {
    char path[64], line[512];
    if (!isdigit((unsigned char)name[0])) return false;
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    // pid (name) state ppid pgrp session: the name may contain brackets, so fields start at the last one.
    const char *start = strchr(line, '('), *end = strrchr(line, ')');
    int session;
    if (start == NULL || end == NULL || sscanf(end + 1, " %c %*d %*d %d", &entry->state, &session) != 2) {
        return false;
    }
    entry->pid = (pid_t)strtol(name, NULL, 10);
    entry->session = session;
    snprintf(entry->name, sizeof entry->name, "%.*s", (int)(end - start - 1), start + 1);
    return true;
}

// The next process of the session; false at the end.
static bool next_of(DIR *folder, pid_t session, struct entry *entry) {
    for (struct dirent *found; folder != NULL && (found = readdir(folder)) != NULL;) {
        if (read_entry(found->d_name, entry) && entry->session == session) return true;
    }
    return false;
}

// ---- segments that a killed launcher leaves behind -------------------------------------------------

// Paths, each with its NUL, one after the other.
struct paths {
    char *text;
    size_t size;
};

static bool is_known(const struct paths *paths, const char *path) {
    for (size_t at = 0; at < paths->size; at += strlen(paths->text + at) + 1) {
        if (strcmp(paths->text + at, path) == 0) return true;
    }
    return false;
}

static void add_path(struct paths *paths, const char *path) {
    size_t length = strlen(path) + 1;
    char *text = is_known(paths, path) ? NULL : realloc(paths->text, paths->size + length);
    if (text == NULL) return;
    memcpy(text + paths->size, path, length);
    *paths = (struct paths){text, paths->size + length};
}

// Adds the segments of Open MPI's shared-memory transport that the process has mapped.
static void add_segments(pid_t pid, struct paths *paths) {
    char name[64], *line = NULL;
    size_t room = 0;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(name, "re");
    while (file != NULL && getline(&line, &room, file) > 0) {
        char *path = strchr(line, '/');
        if (path == NULL || (!strstr(path, "/vader_segment.") && !strstr(path, "/sm_segment."))) continue;
        path[strcspn(path, "\n")] = '\0';
        add_path(paths, path);
    }
    free(line);
    if (file != NULL) fclose(file);
}

// ---- the end -----------------------------------------------------------------------------------------

// Kills the processes that exist now. Returns whether there were any, apart from zombies.
static bool kill_once(pid_t session, struct paths *segments) {
    DIR *folder = opendir("/proc");
    bool found = false;
    for (struct entry entry; next_of(folder, session, &entry);) {
        if (entry.state == 'Z' || entry.state == 'X') continue;
        add_segments(entry.pid, segments);
        kill(entry.pid, SIGKILL);
        found = true;
    }
    if (folder != NULL) closedir(folder);
    return found;
}

void session_kill(pid_t session) {
    struct paths segments = {NULL, 0};
    for (int i = 0; i < MOST_PASSES && kill_once(session, &segments); i++) {
        nanosleep(&(struct timespec){.tv_nsec = PASS_NS}, NULL);
    }
    for (size_t at = 0; at < segments.size; at += strlen(segments.text + at) + 1) unlink(segments.text + at);
    free(segments.text);
}

// ---- stopped processes ---------------------------------------------------------------------------------

// The rank that a launcher gave to the process; -1: none.
static long rank_of(pid_t pid) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID="};
    char path[64], *setting = NULL;
    size_t room = 0;
    long rank = -1;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && rank < 0 && getdelim(&setting, &room, '\0', file) > 0) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            size_t length = strlen(names[i]);
            if (strncmp(setting, names[i], length) == 0) rank = strtol(setting + length, NULL, 10);
        }
    }
    free(setting);
    if (file != NULL) fclose(file);
    return rank;
}

void session_stopped(pid_t session, char text[], size_t size) {
    DIR *folder = opendir("/proc");
    text[0] = '\0';
    for (struct entry entry; next_of(folder, session, &entry);) {
        if (entry.state != 'T' && entry.state != 't') continue;
        size_t used = strlen(text);
        long rank = rank_of(entry.pid);
        const char *comma = used > 0 ? ", " : "";
        if (rank >= 0) {
            snprintf(text + used, size - used, "%srank %ld is stopped", comma, rank);
        } else {
            snprintf(text + used, size - used, "%s%s is stopped", comma, entry.name);
        }
    }
    if (folder != NULL) closedir(folder);
}
