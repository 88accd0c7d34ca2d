// NCCL's own log, which has its numbers of channels and threads, and the settings that it refused. The
// environment enables it before NCCL starts; it is read from where NCCL writes it. What the user's
// environment makes NCCL log is still logged.
#ifndef BENCH_WORKLOAD_NCCL_LOG_H
#define BENCH_WORKLOAD_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { NCCL_LOG_PATH = 512, NCCL_WARNING_SIZE = 100 };

struct nccl_log {
    char path[NCCL_LOG_PATH];       // "": it has no name any more, or there is no log
    FILE *file;                     // NULL: not open yet
    bool is_ours;                   // a temporary file of this process
    bool is_wanted;                 // the user's environment requests all of it
    long read;                      // bytes read so far
    int channels, threads;          // 0: not in the log
    char answer[NCCL_WARNING_SIZE]; // a refused setting, or the last warning; "": none
    bool is_refusal;                // the answer is a refused setting
};

// Sets the environment so that NCCL logs the needed lines.
void nccl_log_enable(struct nccl_log *log);

// Reads new lines. Those of a log of ours are printed to `out`: the important ones, or all, if requested.
void nccl_log_read(struct nccl_log *log, FILE *out);

// Removes the name of a log of ours, once NCCL has opened it, so that no end of this process leaves the file
// behind.
void nccl_log_unlink(struct nccl_log *log);

// Reads the rest, and removes a log of ours.
void nccl_log_end(struct nccl_log *log, FILE *out);

// Expands NCCL_DEBUG_FILE as NCCL does: %h is the host, %p the process.
void nccl_log_expand(const char *pattern, const char *host, int process, char path[], size_t size);

#endif
