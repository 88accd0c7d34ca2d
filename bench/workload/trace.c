// Writes traces; see trace.h. An action's events are written together: the host's (cpu_op, launch), the
// kernel, and the arrow between them.
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/json_text.h"
#include "trace_events.h"
#include "trace_types.h"

enum { BUFFER = 1 << 20, TEXT = 512 };

// ---- names and header ---------------------------------------------------------------------------

static void write_process(struct trace_writer *writer, int pid, const char *name, const char *labels,
                          const char *sort_index) {
    trace_metadata(writer, "process_name", pid, 0, "name", name);
    trace_metadata(writer, "process_labels", pid, 0, "labels", labels);
    trace_metadata(writer, "process_sort_index", pid, 0, "sort_index", sort_index);
}

static void write_names(struct trace_writer *writer) {
    const struct trace *trace = writer->trace;
    char text[TEXT], sort_index[16];
    int rank = trace->program->rank;
    snprintf(text, sizeof text, "rank %d (%s)", rank, trace->description->backend);
    snprintf(sort_index, sizeof sort_index, "%d", 5000000 + rank);
    write_process(writer, trace->pid, trace->program->name, "CPU", "0");
    write_process(writer, rank, trace->program->name, text, sort_index);
    snprintf(text, sizeof text, "thread %d (compute)", trace->tid);
    trace_metadata(writer, "thread_name", trace->pid, trace->tid, "name", text);
    snprintf(text, sizeof text, "stream %d (compute)", COMPUTE_STREAM);
    trace_metadata(writer, "thread_name", rank, COMPUTE_STREAM, "name", text);
    for (int i = 0; i < trace->description->streams; i++) {
        snprintf(text, sizeof text, "stream %d (communication, thread %d)", COMMUNICATION_STREAM + i,
                 trace->description->tids[i]);
        if (trace->description->tids[i] == 0)
            snprintf(text, sizeof text, "stream %d (communication)", COMMUNICATION_STREAM + i);
        trace_metadata(writer, "thread_name", rank, COMMUNICATION_STREAM + i, "name", text);
    }
}

static void write_ranks(const struct trace_writer *writer) {
    for (int rank = 0; rank < writer->trace->program->ranks; rank++) {
        fprintf(writer->file, "%s%d", rank > 0 ? ", " : "", rank);
    }
}

// Types of operands with GEMMs that are computed in another type.
static void write_computed_in(const struct trace_writer *writer) {
    const char *comma = "";
    fputs("\"computed_in\":{", writer->file);
    for (int i = 0; i < DTYPES; i++) {
        enum dtype computed_in = writer->trace->description->computed_in[i];
        if ((int)computed_in == i) continue;
        fprintf(writer->file, "%s\"%s\":\"%s\"", comma, dtype_input_types[i], dtype_input_types[computed_in]);
        comma = ",";
    }
    fputs("}", writer->file);
}

static void write_header(struct trace_writer *writer) {
    const struct trace *trace = writer->trace;
    FILE *file = writer->file;
    int ranks = trace->program->ranks;
    fprintf(file, "{\"schemaVersion\":1,\n\"deviceProperties\":[");
    for (int rank = 0; rank < ranks; rank++) {
        fprintf(file, "%s{\"id\":%d,\"name\":", rank > 0 ? "," : "", rank);
        json_text_write(file, trace->description->device);
        fprintf(file, ",\"totalGlobalMem\":0,\"numSms\":%d}", trace->description->multiprocessors);
    }
    fprintf(file, "],\n\"gentables\":{\"backend\":\"%s\",\"clock\":\"%s\",\"oversubscribed\":%s,",
            trace->description->backend, trace->description->clock, trace->oversubscribed ? "true" : "false");
    fprintf(file, "\"channels\":%d,\"threads\":%d,\"wait\":\"%s\",\"gemm\":\"%s\",",
            trace->description->channels, trace->description->threads, trace->wait,
            trace->description->library);
    write_computed_in(writer);
    fputs("},\n", file);
    fprintf(file,
            "\"distributedInfo\":{\"backend\":\"gentables\",\"rank\":%d,\"world_size\":%d,\"pg_count\":1,"
            "\"pg_config\":[{\"pg_name\":\"0\",\"pg_desc\":\"default_pg\",\"backend_config\":\"gentables\","
            "\"pg_size\":%d,\"ranks\":[",
            trace->program->rank, ranks, ranks);
    write_ranks(writer);
    fprintf(file, "]}]},\n\"record_shapes\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%llu,\n",
            (unsigned long long)trace->base_unix_ns);
    fprintf(file, "\"traceName\":");
    json_text_write(file, trace->program->name);
    fprintf(file, ",\n\"traceEvents\":[");
}

// ---- an action ----------------------------------------------------------------------------------

static const char *name_of(const struct gpu_activity *activity, const char *of_kernel) {
    static const char *const names[] = {[ACTIVITY_MEMCPY] = "Memcpy", [ACTIVITY_MEMSET] = "Memset"};
    return activity->kind == ACTIVITY_KERNEL ? of_kernel : names[activity->kind];
}

// The time, limited to the action's launch.
static uint64_t within(const struct note *note, uint64_t ns) {
    if (ns > note->launched_ns) ns = note->launched_ns;
    return ns > note->launch_ns ? ns : note->launch_ns;
}

// The beginning of the call that launched an activity, if it was recorded and is before the activity; else
// the activity's beginning. Both are limited to the action's launch.
static uint64_t launch_of(const struct note *note, const struct gpu_activity *activity) {
    bool is_recorded = activity->launch_ns != 0 && activity->launch_ns < activity->begin_ns;
    return within(note, is_recorded ? activity->launch_ns : activity->begin_ns);
}

typedef void write_activity(struct trace_writer *writer, const struct gpu_activity *activity, unsigned id,
                            const void *of);

// Writes the activities that a profiler recorded for an action, each with its own launch. If launches were
// not recorded, the first one lasts until the second.
static void write_noted(struct trace_writer *writer, const struct step_notes *step, size_t action,
                        unsigned id, int stream, const void *of, write_activity *write) {
    const struct note *note = &step->notes[action];
    const struct gpu_activity *activities = &step->activities[writer->next_activity];
    size_t count = 0;
    while (writer->next_activity + count < step->activity_count && activities[count].action == action)
        count++;
    for (size_t i = 0; i < count; i++) {
        bool is_recorded = activities[i].launch_ns != 0;
        uint64_t from_ns = i > 0 || is_recorded ? launch_of(note, &activities[i]) : note->launch_ns;
        uint64_t until_ns = is_recorded ? within(note, activities[i].launched_ns) : from_ns;
        if (i == 0 && !is_recorded)
            until_ns = count > 1 ? launch_of(note, &activities[1]) : note->launched_ns;
        trace_write_launch(writer, id, from_ns, until_ns, stream, activities[i].begin_ns);
        write(writer, &activities[i], id, of);
    }
    writer->next_activity += count;
}

static void write_shapes(const struct trace_writer *writer, const struct gemm *gemm) {
    FILE *file = writer->file;
    size_t m = gemm->m, n = gemm->n, k = gemm->k;
    bool adds = gemm->accumulate;
    const char *type = dtype_input_types[gemm->dtype];
    fputs(",\"Input Dims\":[", file);
    if (adds) fprintf(file, "[%zu,%zu],", m, n);
    fprintf(file, "[%zu,%zu],[%zu,%zu]%s],\"Input type\":[", m, k, k, n, adds ? ",[],[]" : "");
    if (adds) fprintf(file, "\"%s\",", type);
    fprintf(file, "\"%s\",\"%s\"%s],\"Input Strides\":[", type, type, adds ? ",\"Scalar\",\"Scalar\"" : "");
    if (adds) fprintf(file, "[%zu,1],", n);
    fprintf(file, gemm->trans_a ? "[1,%zu]," : "[%zu,1],", gemm->trans_a ? m : k);
    fprintf(file, gemm->trans_b ? "[1,%zu]" : "[%zu,1]", gemm->trans_b ? k : n);
    fprintf(file, "%s],\"Concrete Inputs\":[%s]", adds ? ",[],[]" : "",
            adds ? "\"\",\"\",\"\",\"1\",\"1\"" : "\"\",\"\"");
}

static void write_gemm_activity(struct trace_writer *writer, const struct gpu_activity *activity, unsigned id,
                                const void *of) {
    trace_begin_activity(writer, activity, name_of(activity, activity->name != NULL ? activity->name : of),
                         id, COMPUTE_STREAM);
    fputs("}}", writer->file);
}

static void write_gemm(struct trace_writer *writer, const struct step_notes *step, size_t action) {
    const struct gemm *gemm = &writer->trace->program->gemms[writer->trace->program->actions[action].index];
    const struct note *note = &step->notes[action];
    char kernel[TEXT];
    unsigned id = trace_begin_operation(writer, gemm->accumulate ? "aten::addmm" : "aten::mm", note);
    write_shapes(writer, gemm);
    fprintf(writer->file, ",\"Sequence number\":%zu,\"Fwd thread id\":%d,\"layer\":", gemm->sequence,
            gemm->backward ? 1 : 0);
    json_text_write(writer->file, gemm->name);
    fputs(",\"written by\":\"gentables\"}}", writer->file);
    snprintf(kernel, sizeof kernel, "%s_%c%c", writer->trace->description->gemm_kernels[gemm->dtype],
             gemm->trans_a ? 'T' : 'N', gemm->trans_b ? 'T' : 'N');
    if (step->is_recorded) {
        write_noted(writer, step, action, id, COMPUTE_STREAM, kernel, write_gemm_activity);
        return;
    }
    trace_write_launch(writer, id, note->launch_ns, note->launched_ns, COMPUTE_STREAM, note->work_ns);
    trace_begin_kernel(writer, kernel, id, COMPUTE_STREAM, note->work_ns, note->work_end_ns, note->cpu_ns);
    fputs("}}", writer->file);
}

// ---- collectives --------------------------------------------------------------------------------

static const char *collective_name(const struct collective *collective) {
    static const char *const names[COLLECTIVE_KINDS] = {"allreduce", "_allgather_base",
                                                        "_reduce_scatter_base", "all_to_all"};
    return collective->kind == ALL_TO_ALL && !collective->even ? "all_to_allv" : names[collective->kind];
}

static void write_splits(const struct trace_writer *writer, const char *key,
                         const struct collective *collective, const size_t splits[]) {
    bool has = collective->kind == ALL_TO_ALL && !collective->even;
    fprintf(writer->file, ",\"%s\":\"[", key);
    for (int peer = 0; has && peer < writer->trace->program->ranks; peer++) {
        fprintf(writer->file, "%s%zu", peer > 0 ? ", " : "", splits[peer]);
    }
    fputs("]\"", writer->file);
}

static void write_collective_arguments(const struct trace_writer *writer,
                                       const struct collective *collective) {
    fprintf(writer->file,
            ",\"Collective name\":\"%s\",\"In msg nelems\":%zu,\"Out msg nelems\":%zu,\"Group size\":%d,"
            "\"dtype\":\"%s\"",
            collective_name(collective), collective->in_elements, collective->out_elements,
            writer->trace->program->ranks, dtype_metadata_types[collective->dtype]);
    write_splits(writer, "In split size", collective, collective->send);
    write_splits(writer, "Out split size", collective, collective->receive);
    fputs(",\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\","
          "\"Process Group Ranks\":\"[",
          writer->file);
    write_ranks(writer);
    fputs("]\"", writer->file);
}

// "ncclGentables_TWOSHOT_f32", "ncclGentables_MPI_ALL_TO_ALL_f32": readers of traces
// regard kernels as collectives if their name begins with nccl.
static void kernel_name(const struct trace_writer *writer, const struct collective *collective,
                        char name[TEXT]) {
    static const char *const kinds[COLLECTIVE_KINDS] = {"ALLREDUCE", "ALL_GATHER", "REDUCE_SCATTER",
                                                        "ALL_TO_ALL"};
    const char *transport = writer->trace->description->transport_kernel,
               *type = short_dtype_names[collective->dtype];
    bool by_library = strcmp(transport, "MPI") == 0 || strcmp(transport, "NCCL") == 0;
    if (!by_library && collective->kind == ALLREDUCE)
        snprintf(name, TEXT, "ncclGentables_%s_%s", transport, type);
    else
        snprintf(name, TEXT, "ncclGentables_%s%s%s_%s", by_library ? transport : "", by_library ? "_" : "",
                 kinds[collective->kind], type);
}

// From the beginning of the first thread to the end of the last. Threads may begin the next collective while
// others still execute this one; on the one stream, the next then begins when this one ends.
static struct span whole_span(struct trace_writer *writer, const struct span *spans) {
    struct span whole = spans[0];
    for (int i = 1; i < writer->trace->description->streams; i++) {
        if (spans[i].begin_ns < whole.begin_ns) whole.begin_ns = spans[i].begin_ns;
        if (spans[i].end_ns > whole.end_ns) whole.end_ns = spans[i].end_ns;
        if (whole.cpu_ns != NO_CPU) whole.cpu_ns += spans[i].cpu_ns;
    }
    if (whole.begin_ns < writer->communicated_ns) whole.begin_ns = writer->communicated_ns;
    if (whole.end_ns < whole.begin_ns) whole.end_ns = whole.begin_ns;
    writer->communicated_ns = whole.end_ns;
    return whole;
}

// A kernel with a name that does not begin with nccl gets our name, so that readers regard it as a
// collective; copies get no arguments of the collective.
static void write_collective_activity(struct trace_writer *writer, const struct gpu_activity *activity,
                                      unsigned id, const void *of) {
    const struct collective *collective = of;
    char kernel[TEXT];
    kernel_name(writer, collective, kernel);
    bool has_name = activity->name != NULL && strncmp(activity->name, "nccl", 4) == 0;
    trace_begin_activity(writer, activity, name_of(activity, has_name ? activity->name : kernel), id,
                         COMMUNICATION_STREAM);
    if (activity->kind == ACTIVITY_KERNEL) write_collective_arguments(writer, collective);
    fputs("}}", writer->file);
}

static void write_collective(struct trace_writer *writer, const struct collective *collective, unsigned id,
                             const struct note *note, const struct span *spans) {
    char kernel[TEXT];
    struct span whole = whole_span(writer, spans);
    kernel_name(writer, collective, kernel);
    trace_write_launch(writer, id, note->launch_ns, note->launched_ns, COMMUNICATION_STREAM, whole.begin_ns);
    trace_begin_kernel(writer, kernel, id, COMMUNICATION_STREAM, whole.begin_ns, whole.end_ns, whole.cpu_ns);
    write_collective_arguments(writer, collective);
    fputs("}}", writer->file);
    for (int i = 1; i < writer->trace->description->streams; i++) { // of further threads
        trace_begin_complete(writer, "gpu_user_annotation", collective->name, writer->trace->program->rank,
                             COMMUNICATION_STREAM + i, spans[i].begin_ns, spans[i].end_ns);
        fprintf(writer->file, ",\"args\":{\"External id\":%u", id);
        trace_print_us(writer, "cpu time (us)", spans[i].cpu_ns);
        fputs("}}", writer->file);
    }
}

static void write_post(struct trace_writer *writer, const struct step_notes *step, size_t action) {
    const struct program *program = writer->trace->program;
    int index = program->actions[action].index;
    const struct collective *collective = &program->collectives[index];
    const struct note *note = &step->notes[action];
    unsigned id = trace_begin_operation(writer, "record_param_comms", note);
    fprintf(writer->file,
            ",\"Input Dims\":[[%zu]],\"Input type\":[\"%s\"],\"Input Strides\":[[1]],"
            "\"Concrete Inputs\":[\"\"],\"Rank\":%d",
            collective->in_elements, dtype_input_types[collective->dtype], program->rank);
    write_collective_arguments(writer, collective);
    fputs(",\"bucket\":", writer->file);
    json_text_write(writer->file, collective->name);
    fputs("}}", writer->file);
    if (step->is_recorded)
        write_noted(writer, step, action, id, COMMUNICATION_STREAM, collective, write_collective_activity);
    else
        write_collective(writer, collective, id, note, &step->spans[index * MAX_THREADS]);
}

static void write_await(struct trace_writer *writer, int index, uint64_t begin_ns, uint64_t end_ns) {
    const struct trace *trace = writer->trace;
    trace_begin_complete(writer, "cuda_runtime", "gentablesWait", trace->pid, trace->tid, begin_ns, end_ns);
    fprintf(writer->file, ",\"args\":{\"cbid\":0,\"correlation\":%u,\"bucket\":", ++writer->correlation);
    json_text_write(writer->file, trace->program->collectives[index].name);
    fputs("}}", writer->file);
}

// ---- steps --------------------------------------------------------------------------------------

static void write_step(struct trace_writer *writer, size_t number) {
    const struct trace *trace = writer->trace;
    const struct step_notes *step = &trace->steps[number];
    char name[TEXT];
    snprintf(name, sizeof name, "ProfilerStep#%zu", number);
    trace_begin_complete(writer, "user_annotation", name, trace->pid, trace->tid, step->begin_ns,
                         step->end_ns);
    unsigned id = ++writer->events;
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"Record function id\":0,\"Ev Idx\":%u}}", id,
            id - 1);
    for (int stream = 0; stream <= trace->description->streams; stream++) {
        trace_begin_complete(writer, "gpu_user_annotation", name, trace->program->rank,
                             stream == 0 ? COMPUTE_STREAM : COMMUNICATION_STREAM + stream - 1, step->begin_ns,
                             step->end_ns);
        fprintf(writer->file, ",\"args\":{\"External id\":%u}}", id);
    }
    writer->next_activity = 0;
    for (size_t i = 0; i < trace->program->action_count; i++) {
        struct action action = trace->program->actions[i];
        if (action.kind == DO_GEMM)
            write_gemm(writer, step, i);
        else if (action.kind == DO_POST)
            write_post(writer, step, i);
        else
            write_await(writer, action.index, step->notes[i].begin_ns, step->notes[i].end_ns);
        while (writer->next_activity < step->activity_count &&
               step->activities[writer->next_activity].action <= i)
            writer->next_activity++;
    }
    for (int i = 0; i < step->final_wait_count; i++)
        write_await(writer, step->final_waits[i].collective, step->final_waits[i].begin_ns,
                    step->final_waits[i].end_ns);
}

static int write_all(const struct trace *trace, FILE *file) {
    struct trace_writer writer = {.trace = trace,
                                  .file = file,
                                  .pid = trace->pid,
                                  .tid = trace->tid,
                                  .rank = trace->program->rank,
                                  .base_ns = trace->base_ns,
                                  .first = true};
    write_header(&writer);
    write_names(&writer);
    for (size_t i = 0; i < trace->step_count; i++) write_step(&writer, i);
    fputs("\n]}\n", file);
    return ferror(file) ? EIO : 0;
}

// The name of a file until it is complete. NULL: out of memory.
static char *temporary_of(const char *path) {
    size_t length = strlen(path) + sizeof ".new";
    char *temporary = malloc(length);
    if (temporary != NULL) snprintf(temporary, length, "%s.new", path);
    return temporary;
}

int trace_try(const char *path) {
    char *temporary = temporary_of(path);
    if (temporary == NULL) return ENOMEM;
    FILE *file = fopen(temporary, "w");
    int problem = file == NULL ? errno : 0;
    if (file != NULL) {
        fclose(file);
        unlink(temporary);
    }
    free(temporary);
    return problem;
}

int trace_write(const struct trace *trace, const char *path) {
    char *temporary = temporary_of(path), *buffer = malloc(BUFFER);
    FILE *file = NULL;
    int problem = temporary == NULL || buffer == NULL ? ENOMEM : 0;
    if (problem == 0) {
        file = fopen(temporary, "w");
        if (file == NULL) problem = errno;
    }
    if (file != NULL) {
        setvbuf(file, buffer, _IOFBF, BUFFER);
        problem = write_all(trace, file);
        if (fclose(file) != 0 && problem == 0) problem = errno;
        if (problem == 0 && rename(temporary, path) != 0) problem = errno;
        if (problem != 0) unlink(temporary);
    }
    free(temporary);
    free(buffer);
    return problem;
}
