// Requests and reads NCCL's log; see nccl_log.h.
#include "nccl_log.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- requesting -----------------------------------------------------------------------------------------

// Whether this level logs less than is needed.
static bool is_terse(const char *level) {
    static const char *const enough[] = {"INFO", "ABORT", "TRACE"};
    for (size_t i = 0; level != NULL && i < sizeof enough / sizeof enough[0]; i++) {
        if (strcasecmp(level, enough[i]) == 0) return false;
    }
    return true;
}

// Adds the subsystems that log counts to those that the user requests; a list of excluded subsystems stays as
// it is.
static void request_subsystems(void) {
    static const char needed[] = "INIT,BOOTSTRAP,ENV,TUNING";
    const char *wanted = getenv("NCCL_DEBUG_SUBSYS");
    char both[256];
    if (wanted != NULL && wanted[0] == '^') return;
    snprintf(both, sizeof both, "%.200s%s%s", wanted != NULL ? wanted : "", wanted != NULL ? "," : "",
             needed);
    setenv("NCCL_DEBUG_SUBSYS", both, 1);
}

void nccl_log_expand(const char *pattern, const char *host, int process, char path[], size_t size) {
    size_t length = 0;
    if (size == 0) return;
    path[0] = '\0';
    for (; *pattern != '\0' && length + 1 < size; pattern++) {
        size_t room = size - length;
        int added = 1;
        if (pattern[0] == '%' && pattern[1] == 'h') {
            added = snprintf(path + length, room, "%.*s", (int)strcspn(host, "."), host);
            pattern++;
        } else if (pattern[0] == '%' && pattern[1] == 'p') {
            added = snprintf(path + length, room, "%d", process);
            pattern++;
        } else {
            if (pattern[0] == '%' && pattern[1] == '%') pattern++;
            snprintf(path + length, room, "%c", *pattern);
        }
        length += (size_t)added < room ? (size_t)added : room - 1;
    }
}

// Opens a temporary file for the log.
static void open_own(struct nccl_log *log) {
    const char *folder = getenv("TMPDIR");
    snprintf(log->path, sizeof log->path, "%.400s/gentables-nccl-XXXXXX", folder != NULL ? folder : "/tmp");
    int number = mkstemp(log->path);
    log->file = number >= 0 ? fdopen(number, "r") : NULL;
    log->is_ours = log->file != NULL;
    if (log->is_ours)
        setenv("NCCL_DEBUG_FILE", log->path, 1);
    else
        log->path[0] = '\0';
}

void nccl_log_enable(struct nccl_log *log) {
    const char *file = getenv("NCCL_DEBUG_FILE"), *level = getenv("NCCL_DEBUG");
    char host[256] = "";
    *log = (struct nccl_log){.is_wanted = level != NULL};
    if (is_terse(level)) setenv("NCCL_DEBUG", "INFO", 1);
    request_subsystems();
    gethostname(host, sizeof host - 1);
    if (file != NULL)
        nccl_log_expand(file, host, (int)getpid(), log->path, sizeof log->path);
    else
        open_own(log);
}

// ---- reading --------------------------------------------------------------------------------------------

// The number before this text, as in "24 coll channels".
static int number_before(const char *line, const char *text) {
    const char *at = strstr(line, text);
    while (at != NULL && at > line && at[-1] == ' ') at--;
    while (at != NULL && at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    return at != NULL ? atoi(at) : 0;
}

// The sixth number of "Max NThreads | a | b ...": of a ring with the protocol Simple, which NCCL_NTHREADS
// sets.
static int threads_in(const char *line) {
    enum { RING_SIMPLE = 6 };
    const char *at = strstr(line, "Max NThreads");
    for (int i = 0; at != NULL && i < RING_SIMPLE; i++) {
        at = strchr(at, '|');
        if (at != NULL) at++;
    }
    return at != NULL ? atoi(at) : 0;
}

// The part of a line that reports a refused count, which is a warning in some versions of NCCL; NULL: none.
static const char *refusal_in(const char *line) {
    const char *at = strstr(line, "Invalid NCCL_");
    return at != NULL ? at : strstr(line, "User asked for a m");
}

static const char *warning_in(const char *line) {
    static const char mark[] = " WARN ";
    const char *at = strstr(line, mark);
    return at != NULL ? at + sizeof mark - 1 : NULL;
}

// Reads the facts of a line. Returns whether it has any.
static bool take(struct nccl_log *log, const char *line) {
    int channels = number_before(line, " coll channels"), threads = threads_in(line);
    const char *refusal = refusal_in(line), *warning = warning_in(line);
    if (channels > 0) log->channels = channels;
    if (threads > 0 && log->threads == 0) log->threads = threads;
    if (refusal != NULL && !log->is_refusal) {
        snprintf(log->answer, sizeof log->answer, "%s", refusal);
        log->is_refusal = true;
    } else if (warning != NULL && !log->is_refusal) {
        snprintf(log->answer, sizeof log->answer, "%s", warning);
    }
    return channels > 0 || threads > 0 || refusal != NULL || warning != NULL ||
           strstr(line, "set by environment") != NULL;
}

// Opens regular files only: reading a terminal or a pipe would take data from others, and wait for more.
static FILE *open_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "r") : NULL;
}

// Lines have any length; an incomplete last line is left for later.
void nccl_log_read(struct nccl_log *log, FILE *out) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    if (log->file == NULL && log->path[0] != '\0') log->file = open_file(log->path);
    if (log->file == NULL) return;
    fseek(log->file, log->read, SEEK_SET);
    while ((length = getline(&line, &room, log->file)) > 0 && line[length - 1] == '\n') {
        log->read += length;
        line[strcspn(line, "\r\n")] = '\0';
        bool matters = take(log, line);
        if (log->is_ours && (matters || log->is_wanted)) fprintf(out, "%s\n", line);
    }
    free(line);
}

void nccl_log_unlink(struct nccl_log *log) {
    if (log->is_ours && log->path[0] != '\0') unlink(log->path);
    if (log->is_ours) log->path[0] = '\0';
}

void nccl_log_end(struct nccl_log *log, FILE *out) {
    nccl_log_read(log, out);
    nccl_log_unlink(log);
    if (log->file != NULL) fclose(log->file);
    log->file = NULL;
    log->path[0] = '\0';
}
