// NCCL's own log of how many channels and threads it has, and of what it refused: it is asked for by the
// environment, before NCCL starts, and read where NCCL writes it. What somebody else asked NCCL to log goes
// on being logged.
#ifndef BENCH_WORKLOAD_NCCL_LOG_H
#define BENCH_WORKLOAD_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { NCCL_LOG_PATH = 512, NCCL_ANSWER = 100 };

struct nccl_log {
    char path[NCCL_LOG_PATH]; // "": it has no name any more, or there is none
    FILE *file;               // NULL: not open yet
    bool is_ours;             // and nobody else reads it
    bool is_wanted;           // somebody asked for all of it
    long read;                // so many bytes of it are read
    int channels, threads;    // 0: it does not say
    char answer[NCCL_ANSWER]; // what NCCL refused and went on without, or last warned of; "": nothing
    bool is_refusal;          // the answer is the former
};

// Sets the environment so that NCCL says what is needed.
void nccl_log_ask(struct nccl_log *log);

// Reads what is new. Of a log that is ours what matters goes on to `said`: all of it, where that is wanted.
void nccl_log_read(struct nccl_log *log, FILE *said);

// Once NCCL has opened a log that is ours nobody needs its name: no end of this process leaves it behind.
void nccl_log_hide(struct nccl_log *log);

// Reads the rest, and removes a log that is ours.
void nccl_log_end(struct nccl_log *log, FILE *said);

// The file that NCCL makes of NCCL_DEBUG_FILE: %h stands for the host, %p for the process.
void nccl_log_expand(const char *pattern, const char *host, int process, char path[], size_t size);

#endif
