// Requests in, rows out; see protocol.h.
#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_identity.h"
#include "plugin_loader/plugins.h"

static FILE *apart; // NULL: standard output is not shared with libraries

FILE *protocol_out(void) {
    return apart != NULL ? apart : stdout;
}

int protocol_keep_apart(void) {
    if (apart != NULL) return 0;
    fflush(stdout);
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept < 0) return -1;
    apart = fdopen(kept, "w");
    if (apart != NULL && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) return 0;
    close(kept);
    apart = NULL;
    return -1;
}

void protocol_write_identity(FILE *out) {
    char library[512], isa[32];
    backend->describe(library, sizeof library, isa, sizeof isa);
    fprintf(out, "protocol=%d bench=%s isa=%s compiler=%s library=%s\n", PROTOCOL_VERSION, BENCH_HASH, isa,
            BENCH_COMPILER, library);
}

void protocol_write_segments(FILE *out) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *job = getenv("PMIX_NAMESPACE");
    const char *folder = getenv("OMPI_MCA_btl_vader_backing_directory");
    char *end = NULL;
    unsigned long number = job != NULL ? strtoul(job, &end, 10) : 0;
    if (rank == NULL || strcmp(rank, "0") != 0 || number == 0 || *end != '\0') return;
    fprintf(out, "segments uid=%u job=%lx folder=%s\n", (unsigned)getuid(), number,
            folder != NULL ? folder : "/dev/shm");
    fflush(out);
}

void protocol_write_hello(FILE *out, const struct harness *harness) {
    const struct group *group = harness->group;
    fprintf(out, "hello world_size=%d nodes=%d ranks_per_node=%d cores=%d placement=%s roundtrip_us=%.4f ",
            group->size, group->nodes, group->ranks_per_node, group->cores, backend->placement(group),
            harness->roundtrip_us);
    protocol_write_identity(out);
    backend->write_devices(group, out);
    for (int i = 0; i < candidate_count(); i++) {
        fprintf(out, "strategy name=%s status=", backend->candidates[i].name);
        if (harness->is_set_up[i])
            fprintf(out, "available\n");
        else
            fprintf(out, "unavailable reason=%s\n", harness->unavailable[i]);
    }
    fprintf(out, "ready\n");
}

void protocol_write_row(FILE *out, const struct harness *harness, const struct request *request,
                        const struct result *result) {
    fprintf(out, "row id=%llu strategy=%s", (unsigned long long)request->id, result->candidate->name);
    figures_write(out, result->figures);
    fprintf(out, " bits=%016llx mode=%s accumulate=%s placement=%s", (unsigned long long)result->bits,
            call_mode_names[request->mode], result->candidate->accumulates_fp32 ? "fp32" : "native",
            backend->placement(harness->group));
}

void protocol_write_results(FILE *out, const struct harness *harness, const struct request *request,
                            const struct result results[]) {
    unsigned long long id = request->id;
    for (int i = 0; i < candidate_count(); i++) {
        const struct result *result = &results[i];
        if (result->candidate == NULL) continue;
        if (result->reason != NULL) {
            fprintf(out, "none id=%llu strategy=%s reason=%s\n", id, result->candidate->name, result->reason);
            continue;
        }
        protocol_write_row(out, harness, request, result);
        fputc('\n', out);
    }
    fprintf(out, "done id=%llu roundtrip_us=%.4f\n", id, harness->roundtrip_us);
}

void protocol_write_candidates(FILE *out) {
    for (int fusion = 0; fusion < FUSIONS; fusion++) fprintf(out, "fusion name=%s\n", fusion_names[fusion]);
    for (int i = 0; i < candidate_count(); i++) {
        const struct candidate *candidate = &backend->candidates[i];
        fprintf(out, "candidate name=%s plugin=%d usual=%d ops=", candidate->name, candidate->plugin != NULL,
                !candidate->is_optional);
        const char *comma = "";
        for (int op = 0; op < OPS; op++) {
            if (!candidate_does(candidate, (enum op)op)) continue;
            fprintf(out, "%s%s", comma, op_names[op]);
            comma = ",";
        }
        fprintf(out, " reason=%s\n", plugins_parameters(candidate)); // may contain spaces
    }
    fprintf(out, "libraries hash=%016llx\n", (unsigned long long)plugins_hash());
}

int find_name(const char *const names[], int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    return -1;
}

void want_usual(struct request *request, int nodes) {
    for (int i = 0; i < candidate_count(); i++) {
        if (request->wanted[i]) return;
    }
    for (int i = 0; i < candidate_count(); i++) {
        const struct candidate *candidate = &backend->candidates[i];
        request->wanted[i] = !candidate->is_optional && candidate_spans(candidate, nodes) &&
                             candidate_does(candidate, request->shape.op);
    }
}

static int candidate_called(const char *name, size_t length) {
    for (int i = 0; i < candidate_count(); i++) {
        const char *own = backend->candidates[i].name;
        if (strlen(own) == length && memcmp(own, name, length) == 0) return i;
    }
    return -1;
}

int want_strategies(struct request *request, const char *list, char reason[], size_t reason_size) {
    memset(request->wanted, 0, sizeof request->wanted);
    int wanted = 0;
    for (const char *name = list + strspn(list, ","); *name != '\0'; name += strspn(name, ",")) {
        size_t length = strcspn(name, ",");
        int index = candidate_called(name, length);
        if (index < 0) {
            snprintf(reason, reason_size, "unknown strategy %.*s", (int)length, name);
            return -1;
        }
        request->wanted[index] = 1;
        wanted++;
        name += length;
    }
    if (wanted > MAX_IN_A_REQUEST) {
        snprintf(reason, reason_size, "more than %d strategies at once", MAX_IN_A_REQUEST);
        return -1;
    }
    return 0;
}

static int read_number(const char *text, double least, double most, double *number) {
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most ? 0 : -1;
}

static int read_integer(const char *text, double least, double most, double *number) {
    bool is_one = read_number(text, least, most, number) == 0 && *number == floor(*number) &&
                  strspn(text, "0123456789") == strlen(text);
    if (!is_one) *number = 0; // fits all types to which callers convert it
    return is_one ? 0 : -1;
}

// One field of a `measure` line. -1: unknown key or value.
static int read_field(struct request *request, const char *key, char *value, char reason[],
                      size_t reason_size) {
    double number = 0;
    int index = 0, status = 0;
    if (strcmp(key, "op") == 0) {
        index = find_name(op_names, OPS, value);
        request->shape.op = (enum op)index;
        return index < 0 ? -1 : 0;
    }
    if (strcmp(key, "splits") == 0) return splits_read(value, &request->shape.splits) ? 0 : -1;
    if (strcmp(key, "mode") == 0) {
        index = find_name(call_mode_names, MODES, value);
        request->mode = (enum mode)index;
        return index < 0 || !backend->modes[index] ? -1 : 0;
    }
    if (strcmp(key, "strategies") == 0) return want_strategies(request, value, reason, reason_size);
    if (strcmp(key, "dtype") == 0) {
        index = find_name(dtype_names, DTYPES, value);
        request->shape.dtype = (enum dtype)index;
        return index < 0 ? -1 : 0;
    }
    if (strcmp(key, "fusion") == 0) {
        index = find_name(fusion_names, FUSIONS, value);
        request->shape.fusion = (enum fusion)index;
        return index < 0 ? -1 : 0;
    }
    if (strcmp(key, "id") == 0) {
        status = read_integer(value, 0, 1e15, &number);
        request->id = (uint64_t)number;
    } else if (strcmp(key, "hidden_size") == 0) {
        status = read_integer(value, 1, 1 << 24, &number);
        request->shape.hidden_size = (size_t)number;
    } else if (strcmp(key, "count") == 0) { // a size without tokens
        status = read_integer(value, 1, 1ULL << 40, &number);
        request->shape.hidden_size = (size_t)number;
        request->shape.num_tokens = 1;
        request->shape.is_size_alone = true;
    } else if (strcmp(key, "num_tokens") == 0) {
        status = read_integer(value, 1, 1 << 24, &number);
        request->shape.num_tokens = (size_t)number;
    } else if (strcmp(key, "min_samples") == 0) {
        status = read_integer(value, 1, 1e6, &number);
        request->min_samples = (uint32_t)number;
    } else if (strcmp(key, "max_samples") == 0) {
        status = read_integer(value, 1, 1e6, &number);
        request->max_samples = (uint32_t)number;
    } else if (strcmp(key, "budget_us") == 0) {
        status = read_number(value, 0, 1e12, &request->budget_us);
    } else if (strcmp(key, "left_us") == 0) {
        status = read_number(value, 1, 1e15, &request->left_us);
    } else if (strcmp(key, "precision") == 0) {
        status = read_number(value, 0, 1, &request->precision);
    } else if (strcmp(key, "seed") == 0) {
        status = read_integer(value, 0, 4294967295.0, &number);
        request->seed = (uint32_t)number;
    } else {
        status = -1;
    }
    return status;
}

enum line_kind protocol_read_request(char *line, int nodes, struct request *request, char reason[],
                                     size_t reason_size) {
    char *rest = NULL, *word = strtok_r(line, " ", &rest);
    if (word != NULL && strcmp(word, "quit") == 0) return LINE_QUIT;
    if (word == NULL || strcmp(word, "measure") != 0) {
        snprintf(reason, reason_size, "expected `measure` or `quit`, got %s", word ? word : "an empty line");
        return LINE_WRONG;
    }
    *request = (struct request){.min_samples = 20, .max_samples = 200, .budget_us = 100000, .seed = 1};
    for (char *field = strtok_r(NULL, " ", &rest); field != NULL; field = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(field, '=');
        snprintf(reason, reason_size, "cannot read the field %s", field);
        if (equals == NULL) return LINE_WRONG;
        *equals = '\0';
        if (read_field(request, field, equals + 1, reason, reason_size) != 0) return LINE_WRONG;
    }
    if (request->shape.hidden_size == 0 || request->shape.num_tokens == 0) {
        snprintf(reason, reason_size, "a request needs hidden_size and num_tokens, or count");
        return LINE_WRONG;
    }
    if ((request->shape.splits != 0) != (request->shape.op == OP_ALLTOALLV)) {
        snprintf(reason, reason_size, "an alltoallv needs splits, and no other op has them");
        return LINE_WRONG;
    }
    want_usual(request, nodes);
    return LINE_MEASURE;
}
