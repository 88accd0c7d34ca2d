// The bench by hand; see by_hand.h. Each strategy has a line, with its name in nccl-tests' column for the
// root; a strategy without a time is a comment. `gentables import` reads the table and the JSON.
#include "by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_text.h"
#include "protocol.h"

enum { DEFAULT_HIDDEN_SIZE = 4096, HOST_SIZE = 256, LIBRARY_SIZE = 512 };

// The totals for the last lines.
struct totals {
    double bus_bandwidth;
    size_t lines, wrong;
};

// A message of about `bytes`: whole tokens, or one shorter token; for ops other than the allreduce, whole
// shares of all ranks.
static struct shape shape_of(const struct by_hand *options, size_t bytes, int ranks) {
    struct shape shape = options->request.shape;
    size_t elements = bytes / dtype_sizes_bytes[shape.dtype];
    size_t unit = traffic_unit(shape.op, shape.splits, ranks);
    elements = elements < unit ? unit : elements / unit * unit;
    if (shape.op != OP_ALLREDUCE) {
        shape.num_tokens = 1;
        shape.hidden_size = elements;
        return shape;
    }
    size_t row = options->hidden_size > 0 ? options->hidden_size : DEFAULT_HIDDEN_SIZE;
    shape.hidden_size = options->hidden_size > 0 || elements > row ? row : elements;
    shape.num_tokens = elements / shape.hidden_size;
    if (shape.num_tokens == 0) shape.num_tokens = 1;
    return shape;
}

// ---- the head -----------------------------------------------------------------------------------

// The process of a rank, its host and its device.
struct rank_location {
    int pid;
    char host[HOST_SIZE];
    char device[HOST_SIZE];
};

static void gather_locations(struct group *group, struct rank_location locations[]) {
    struct rank_location mine = {.pid = (int)group->control->of[group->rank].pid};
    gethostname(mine.host, sizeof mine.host - 1);
    backend->describe_rank(group, mine.device, sizeof mine.device);
    group_exchange(group, &mine, sizeof mine, locations);
}

// The device's name, after its number and address.
static const char *name_of_device(const struct rank_location *location) {
    const char *end = strstr(location->device, "] ");
    return end != NULL ? end + 2 : location->device;
}

static bool is_captured(const struct by_hand *options) {
    return options->request.mode == MODE_GRAPH || options->request.mode == MODE_COLD_GRAPH;
}

// The GPUs of a rank; only backends with graphs have any.
static int gpu_count(void) {
    return backend->modes[MODE_GRAPH];
}

static void print_head(const struct group *group, const struct by_hand *options,
                       const struct rank_location locations[]) {
    char nodes[48] = "";
    if (group->nodes > 1) snprintf(nodes, sizeof nodes, " on %d nodes", group->nodes);
    fprintf(protocol_out(), "# gentables-bench: %d ranks%s, %d cores%s%s, %s, fusion %s\n", group->size,
            nodes, group->cores, group->nodes > 1 ? " each" : "",
            group->oversubscribed ? " (oversubscribed)" : "", group->kernels->isa,
            fusion_names[options->request.shape.fusion]);
    bool back_to_back = options->calls.iterations > 0;
    char splits[SPLITS_TEXT];
    splits_print(options->request.shape.splits, splits);
    fprintf(protocol_out(), "# %s%s%s\n", op_names[options->request.shape.op],
            splits[0] != '\0' ? ", splits " : "", splits);
    fprintf(protocol_out(), "# %s\n",
            back_to_back ? "back-to-back calls, their mean" : "each call by itself, the median");
    fprintf(protocol_out(),
            "# nThread 1 nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %u iters: %u "
            "agg iters: 1 validation: %d graph: %d\n",
            gpu_count(), options->from_bytes, options->to_bytes,
            options->factor > 0 ? options->factor : options->increment,
            options->factor > 0 ? "factor" : "bytes", options->calls.warm_up, options->calls.iterations,
            !back_to_back || options->calls.check, is_captured(options));
    for (int rank = 0; rank < group->size; rank++) {
        fprintf(protocol_out(), "#  Rank %2d Pid %6d on %s %s\n", rank, locations[rank].pid,
                locations[rank].host, locations[rank].device);
    }
    fprintf(protocol_out(), "#%11s %12s %9s %6s %-30s %10s %8s %8s %6s\n", "size", "count", "type", "redop",
            "strategy", "time", "algbw", "busbw", "#wrong");
    fprintf(protocol_out(), "#%11s %12s %9s %6s %-30s %10s %8s %8s\n", "(B)", "(elements)", "", "", "",
            "(us)", "(GB/s)", "(GB/s)");
}

static void put_head(FILE *json, const struct group *group, const struct by_hand *options,
                     const struct rank_location locations[]) {
    char library[LIBRARY_SIZE] = "", isa[HOST_SIZE] = "";
    backend->describe(library, sizeof library, isa, sizeof isa);
    const char *nccl = strstr(library, "NCCL ");
    int length = nccl != NULL ? (int)strspn(nccl + 5, "0123456789.") : 0;
    fprintf(json, "{\"version\":1,\"nccl_version\":\"%.*s\",\"args\":[", length > 0 ? length : 4,
            length > 0 ? nccl + 5 : "none");
    for (int i = 0; i < options->argc; i++) {
        if (i > 0) fputc(',', json);
        json_text_write(json, options->argv[i]);
    }
    fprintf(json, "],\"config\":{\"nthreads\":1,\"ngpus\":%d,\"minimum_bytes\":%zu,\"maximum_bytes\":%zu,",
            gpu_count(), options->from_bytes, options->to_bytes);
    fprintf(json, "\"warmup_iterations\":%u,\"iterations\":%u,\"validation\":%d,\"graph\":%d,\"devices\":[",
            options->calls.warm_up, options->calls.iterations,
            options->calls.iterations == 0 || options->calls.check, is_captured(options));
    for (int rank = 0; rank < group->size; rank++) {
        fprintf(json, "%s{\"rank\":%d,\"pid\":%d,\"hostname\":", rank > 0 ? "," : "", rank,
                locations[rank].pid);
        json_text_write(json, locations[rank].host);
        fprintf(json, ",\"device\":%d,\"device_hex\":\"%x\",\"device_info\":", rank, (unsigned)rank);
        json_text_write(json, name_of_device(&locations[rank]));
        fputc('}', json);
    }
    fprintf(json, "]},\"results\":[");
}

// ---- one line -----------------------------------------------------------------------------------

static const char *redop_of(const struct shape *shape) {
    return op_sums[shape->op] ? "sum" : "none";
}

static void put_result(FILE *json, const struct shape *shape, const struct result *result, double algbw,
                       double busbw, bool is_checked, bool is_first) {
    size_t count = shape->num_tokens * shape->hidden_size;
    fprintf(json, "%s{\"size\":%zu,\"count\":%zu,\"type\":\"%s\",\"redop\":\"%s\",\"root\":\"%d\",",
            is_first ? "" : ",", count * dtype_sizes_bytes[shape->dtype], count, dtype_names[shape->dtype],
            redop_of(shape), shape->op == OP_BROADCAST ? 0 : -1);
    fprintf(json, "\"strategy\":\"%s\",\"out_of_place\":{\"time\":%.4f,\"alg_bw\":%.6f,\"bus_bw\":%.6f,",
            result->candidate->name, result->time_us.median, algbw, busbw);
    if (is_checked) {
        fprintf(json, "\"nwrong\":%zu},\"in_place\":null}", result->wrong);
    } else {
        fprintf(json, "\"nwrong\":null},\"in_place\":null}");
    }
}

static void print_result(const struct group *group, const struct by_hand *options, const struct shape *shape,
                         const struct result *result, struct totals *totals, FILE *json) {
    size_t count = shape->num_tokens * shape->hidden_size, bytes = count * dtype_sizes_bytes[shape->dtype];
    bool is_checked = options->calls.iterations == 0 || options->calls.check;
    bool has_time = result->reason == NULL;
    totals->wrong += result->wrong;
    fprintf(protocol_out(), "%s%*zu %12zu %9s %6s %-30s", has_time ? "" : "#", has_time ? 12 : 11, bytes,
            count, dtype_names[shape->dtype], redop_of(shape), result->candidate->name);
    if (!has_time) {
        fprintf(protocol_out(), " %s\n", result->reason);
        return;
    }
    double algbw = (double)bytes / result->time_us.median / 1000;
    double busbw = algbw * op_bus_factor(shape->op, group->size);
    fprintf(protocol_out(), " %10.2f %8.2f %8.2f ", result->time_us.median, algbw, busbw);
    if (is_checked) {
        fprintf(protocol_out(), "%6zu\n", result->wrong);
    } else {
        fprintf(protocol_out(), "%6s\n", "N/A");
    }
    if (json != NULL) put_result(json, shape, result, algbw, busbw, is_checked, totals->lines == 0);
    totals->bus_bandwidth += busbw;
    totals->lines++;
}

// ---- the end ------------------------------------------------------------------------------------

static void print_totals(const struct totals *totals) {
    double mean = totals->lines > 0 ? totals->bus_bandwidth / (double)totals->lines : 0;
    fprintf(protocol_out(), "# Out of bounds values : %zu %s\n", totals->wrong,
            totals->wrong == 0 ? "OK" : "FAILED");
    fprintf(protocol_out(), "# Avg bus bandwidth    : %g\n", mean);
}

static void put_totals(FILE *json, const struct totals *totals) {
    double mean = totals->lines > 0 ? totals->bus_bandwidth / (double)totals->lines : 0;
    fprintf(json, "],\"out_of_bounds\":{\"count\":%zu,\"okay\":%s},", totals->wrong,
            totals->wrong == 0 ? "true" : "false");
    fprintf(json, "\"average_bus_bandwidth\":{\"bandwidth\":%.6f,\"okay\":\"unchecked\"}}\n", mean);
}

// Writes the text under another name first, so that the file is never incomplete.
static bool write_file(const char *path, const char *text, size_t size) {
    size_t room = strlen(path) + sizeof ".tmp";
    char *temporary = malloc(room);
    if (temporary == NULL) return false;
    snprintf(temporary, room, "%s.tmp", path);
    FILE *file = fopen(temporary, "w");
    bool written = file != NULL && fwrite(text, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0) written = false;
    if (written) written = rename(temporary, path) == 0;
    if (!written && file != NULL) remove(temporary);
    free(temporary);
    return written;
}

// ---- all sizes ----------------------------------------------------------------------------------

static int measure_sizes(struct harness *harness, const struct by_hand *options, struct result results[],
                         struct totals *totals, FILE *json) {
    struct group *group = harness->group;
    for (size_t bytes = options->from_bytes; bytes <= options->to_bytes;) {
        struct request request = options->request;
        request.shape = shape_of(options, bytes, group->size);
        int status = options->calls.iterations > 0
                         ? back_to_back_measure(harness, &request, &options->calls, results)
                         : harness_measure(harness, &request, results);
        if (status != 0) return -1;
        for (int i = 0; i < candidate_count() && group->rank == 0; i++) {
            if (results[i].candidate == NULL) continue;
            print_result(group, options, &request.shape, &results[i], totals, json);
        }
        fflush(protocol_out());
        size_t next = options->factor > 0 ? bytes * options->factor : bytes + options->increment;
        if (next / (options->factor > 0 ? options->factor : 1) < bytes) break; // overflow
        bytes = next;
    }
    return 0;
}

int by_hand_run(struct harness *harness, const struct by_hand *options, struct result results[]) {
    struct group *group = harness->group;
    struct rank_location *locations = calloc((size_t)group->size, sizeof *locations);
    struct totals totals = {0};
    char *text = NULL;
    size_t size = 0;
    if (locations == NULL) {
        group_fail(group, "out of memory");
        return -1;
    }
    FILE *json = group->rank == 0 && options->json_path != NULL ? open_memstream(&text, &size) : NULL;
    gather_locations(group, locations);
    if (group->rank == 0) print_head(group, options, locations);
    if (json != NULL) put_head(json, group, options, locations);
    int status = measure_sizes(harness, options, results, &totals, json);
    if (group->rank == 0 && status == 0) print_totals(&totals);
    if (json != NULL) {
        put_totals(json, &totals);
        fclose(json);
        if (status == 0 && !write_file(options->json_path, text, size)) {
            fprintf(stderr, "gentables-bench: %s: cannot be written\n", options->json_path);
            status = 1;
        }
        free(text);
    }
    free(locations);
    return status;
}
