// Writes traces; see trace.h. An action's events are written together: what the host did (cpu_op, launch),
// what ran (kernel), and the arrow between them.
#include "trace.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, TEXT = 512 };

struct writer {
    const struct trace *trace;
    FILE *file;
    bool first;               // no event is written yet
    unsigned events;          // host events so far: Ev Idx, and External id counts from 1
    unsigned correlation;     // of the last launch
    uint64_t communicated_ns; // what the first communication stream has been busy until
    size_t work;              // of a step that a profiler told of: the next one that is not written
};

// ---- pieces -------------------------------------------------------------------------------------

// Text in JSON; names hold no control characters.
static void quote(const struct writer *writer, const char *text) {
    fputc('"', writer->file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', writer->file);
        if ((unsigned char)*text >= ' ') fputc(*text, writer->file);
    }
    fputc('"', writer->file);
}

static void print_us(const struct writer *writer, const char *key, uint64_t ns) {
    fprintf(writer->file, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

static uint64_t since_base(const struct writer *writer, uint64_t ns) {
    return ns - writer->trace->base_ns;
}

static void begin_event(struct writer *writer, const char *phase) {
    fprintf(writer->file, "%s\n{\"ph\":\"%s\"", writer->first ? "" : ",", phase);
    writer->first = false;
}

static void begin_complete(struct writer *writer, const char *category, const char *name, int pid, int tid,
                           uint64_t begin_ns, uint64_t end_ns) {
    begin_event(writer, "X");
    fprintf(writer->file, ",\"cat\":\"%s\",\"name\":", category);
    quote(writer, name);
    fprintf(writer->file, ",\"pid\":%d,\"tid\":%d", pid, tid);
    print_us(writer, "ts", since_base(writer, begin_ns));
    print_us(writer, "dur", end_ns - begin_ns);
}

static void metadata(struct writer *writer, const char *name, int pid, int tid, const char *key,
                     const char *value) {
    begin_event(writer, "M");
    fprintf(writer->file, ",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":0.000,\"args\":{\"%s\":", name, pid,
            tid, key);
    if (strcmp(key, "sort_index") == 0)
        fputs(value, writer->file);
    else
        quote(writer, value);
    fputs("}}", writer->file);
}

// What readers call an element's type, as an input of an op and of a collective.
static const char *const input_types[DTYPES] = {
    [DTYPE_FLOAT32] = "float", [DTYPE_BFLOAT16] = "c10::BFloat16", [DTYPE_FLOAT16] = "c10::Half"};
static const char *const message_types[DTYPES] = {
    [DTYPE_FLOAT32] = "Float", [DTYPE_BFLOAT16] = "BFloat16", [DTYPE_FLOAT16] = "Half"};

// ---- who is there -------------------------------------------------------------------------------

static void write_process(struct writer *writer, int pid, const char *name, const char *labels,
                          const char *sort_index) {
    metadata(writer, "process_name", pid, 0, "name", name);
    metadata(writer, "process_labels", pid, 0, "labels", labels);
    metadata(writer, "process_sort_index", pid, 0, "sort_index", sort_index);
}

static void write_names(struct writer *writer) {
    const struct trace *trace = writer->trace;
    char text[TEXT], sort_index[16];
    int rank = trace->program->rank;
    snprintf(text, sizeof text, "rank %d (%s)", rank, trace->words->backend);
    snprintf(sort_index, sizeof sort_index, "%d", 5000000 + rank);
    write_process(writer, trace->pid, trace->program->name, "CPU", "0");
    write_process(writer, rank, trace->program->name, text, sort_index);
    snprintf(text, sizeof text, "thread %d (compute)", trace->tid);
    metadata(writer, "thread_name", trace->pid, trace->tid, "name", text);
    snprintf(text, sizeof text, "stream %d (compute)", COMPUTE_STREAM);
    metadata(writer, "thread_name", rank, COMPUTE_STREAM, "name", text);
    for (int i = 0; i < trace->words->streams; i++) {
        snprintf(text, sizeof text, "stream %d (communication, thread %d)", COMMUNICATION_STREAM + i,
                 trace->words->tids[i]);
        if (trace->words->tids[i] == 0)
            snprintf(text, sizeof text, "stream %d (communication)", COMMUNICATION_STREAM + i);
        metadata(writer, "thread_name", rank, COMMUNICATION_STREAM + i, "name", text);
    }
}

static void write_ranks(const struct writer *writer) {
    for (int rank = 0; rank < writer->trace->program->ranks; rank++) {
        fprintf(writer->file, "%s%d", rank > 0 ? ", " : "", rank);
    }
}

// Types of operands whose GEMMs are computed in another, and in which.
static void write_computed_in(const struct writer *writer) {
    const char *comma = "";
    fputs("\"computed_in\":{", writer->file);
    for (int i = 0; i < DTYPES; i++) {
        enum dtype computed_in = writer->trace->words->computed_in[i];
        if ((int)computed_in == i) continue;
        fprintf(writer->file, "%s\"%s\":\"%s\"", comma, input_types[i], input_types[computed_in]);
        comma = ",";
    }
    fputs("}", writer->file);
}

static void write_header(struct writer *writer) {
    const struct trace *trace = writer->trace;
    FILE *file = writer->file;
    int ranks = trace->program->ranks;
    fprintf(file, "{\"schemaVersion\":1,\n\"deviceProperties\":[");
    for (int rank = 0; rank < ranks; rank++) {
        fprintf(file, "%s{\"id\":%d,\"name\":", rank > 0 ? "," : "", rank);
        quote(writer, trace->words->device);
        fprintf(file, ",\"totalGlobalMem\":0,\"numSms\":%d}", trace->words->multiprocessors);
    }
    fprintf(file, "],\n\"gentables\":{\"backend\":\"%s\",\"clock\":\"%s\",\"oversubscribed\":%s,",
            trace->words->backend, trace->words->clock, trace->oversubscribed ? "true" : "false");
    fprintf(file, "\"channels\":%d,\"threads\":%d,\"wait\":\"%s\",\"gemm\":\"%s\",", trace->words->channels,
            trace->words->threads, trace->wait, trace->words->library);
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
    quote(writer, trace->program->name);
    fprintf(file, ",\n\"traceEvents\":[");
}

// ---- an action ----------------------------------------------------------------------------------

// The host's side of an action, open for more arguments; its number is the External id.
static unsigned begin_operation(struct writer *writer, const char *name, const struct note *note) {
    begin_complete(writer, "cpu_op", name, writer->trace->pid, writer->trace->tid, note->begin_ns,
                   note->end_ns);
    unsigned id = ++writer->events;
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"Record function id\":0,\"Ev Idx\":%u", id, id - 1);
    return id;
}

// A launch, on the host from and until these times, and the arrow to what it launches, which begins at
// `work_ns`.
static void write_launch(struct writer *writer, unsigned id, uint64_t from_ns, uint64_t until_ns, int stream,
                         uint64_t work_ns) {
    const struct trace *trace = writer->trace;
    unsigned correlation = ++writer->correlation;
    begin_complete(writer, "cuda_runtime", "gentablesLaunch", trace->pid, trace->tid, from_ns,
                   from_ns > until_ns ? from_ns : until_ns);
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"cbid\":0,\"correlation\":%u}}", id, correlation);
    begin_event(writer, "s");
    fprintf(writer->file, ",\"id\":%u,\"pid\":%d,\"tid\":%d", correlation, trace->pid, trace->tid);
    print_us(writer, "ts", since_base(writer, from_ns));
    fputs(",\"cat\":\"ac2g\",\"name\":\"ac2g\"}", writer->file);
    begin_event(writer, "f");
    fprintf(writer->file, ",\"id\":%u,\"pid\":%d,\"tid\":%d", correlation, trace->program->rank, stream);
    print_us(writer, "ts", since_base(writer, work_ns));
    fputs(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}", writer->file);
}

// What the last launch ran, open for more arguments.
static void begin_work(struct writer *writer, const char *category, const char *name, unsigned id, int stream,
                       uint64_t begin_ns, uint64_t end_ns) {
    int rank = writer->trace->program->rank;
    begin_complete(writer, category, name, rank, stream, begin_ns, end_ns);
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"device\":%d,\"stream\":%d,\"correlation\":%u", id,
            rank, stream, writer->correlation);
}

// A kernel of which only the times are known. On a processor it is one thread in one block, whose processor
// time is known, too; on a GPU its grid is not told.
static void begin_kernel(struct writer *writer, const char *name, unsigned id, int stream, uint64_t begin_ns,
                         uint64_t end_ns, uint64_t cpu_ns) {
    begin_work(writer, "kernel", name, id, stream, begin_ns, end_ns);
    if (cpu_ns == NO_CPU) return;
    fputs(",\"context\":0,\"grid\":[1,1,1],\"block\":[1,1,1]", writer->file);
    print_us(writer, "cpu time (us)", cpu_ns);
}

// What a profiler told of, open for more arguments.
static void begin_told(struct writer *writer, const struct work *work, const char *name, unsigned id,
                       int stream) {
    static const char *const categories[] = {
        [WORK_KERNEL] = "kernel", [WORK_MEMCPY] = "gpu_memcpy", [WORK_MEMSET] = "gpu_memset"};
    const int32_t *grid = work->grid, *block = work->block;
    begin_work(writer, categories[work->kind], name, id, stream, work->begin_ns, work->end_ns);
    fprintf(writer->file, ",\"context\":%u", work->context);
    if (work->kind == WORK_KERNEL)
        fprintf(writer->file,
                ",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"registers per thread\":%u,\"shared memory\":%u",
                grid[0], grid[1], grid[2], block[0], block[1], block[2], work->registers, work->shared_bytes);
    else
        fprintf(writer->file, ",\"bytes\":%llu", (unsigned long long)work->bytes);
}

static const char *name_of(const struct work *work, const char *of_kernel) {
    static const char *const names[] = {[WORK_MEMCPY] = "Memcpy", [WORK_MEMSET] = "Memset"};
    return work->kind == WORK_KERNEL ? of_kernel : names[work->kind];
}

// A time within the action's hand-over.
static uint64_t within(const struct note *note, uint64_t ns) {
    if (ns > note->launched_ns) ns = note->launched_ns;
    return ns > note->launch_ns ? ns : note->launch_ns;
}

// When the call began that launched a work, and no later than the work did; where that is not told, when it
// was done at the latest.
static uint64_t launch_of(const struct note *note, const struct work *work) {
    bool is_told = work->launch_ns != 0 && work->launch_ns < work->begin_ns;
    return within(note, is_told ? work->launch_ns : work->begin_ns);
}

typedef void write_work(struct writer *writer, const struct work *work, unsigned id, const void *of);

// Writes each work of an action that a profiler told of, each with a launch of its own. Where it did not tell
// of that: the first launch is the hand-over up to the second.
static void write_told(struct writer *writer, const struct step_notes *step, size_t action, unsigned id,
                       int stream, const void *of, write_work *write) {
    const struct note *note = &step->notes[action];
    const struct work *works = &step->works[writer->work];
    size_t count = 0;
    while (writer->work + count < step->work_count && works[count].action == action) count++;
    for (size_t i = 0; i < count; i++) {
        bool is_told = works[i].launch_ns != 0;
        uint64_t from_ns = i > 0 || is_told ? launch_of(note, &works[i]) : note->launch_ns;
        uint64_t until_ns = is_told ? within(note, works[i].launched_ns) : from_ns;
        if (i == 0 && !is_told) until_ns = count > 1 ? launch_of(note, &works[1]) : note->launched_ns;
        write_launch(writer, id, from_ns, until_ns, stream, works[i].begin_ns);
        write(writer, &works[i], id, of);
    }
    writer->work += count;
}

static void write_shapes(const struct writer *writer, const struct gemm *gemm) {
    FILE *file = writer->file;
    size_t m = gemm->m, n = gemm->n, k = gemm->k;
    bool adds = gemm->accumulate;
    const char *type = input_types[gemm->dtype];
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

static void write_gemm_work(struct writer *writer, const struct work *work, unsigned id, const void *of) {
    begin_told(writer, work, name_of(work, work->name != NULL ? work->name : of), id, COMPUTE_STREAM);
    fputs("}}", writer->file);
}

static void write_gemm(struct writer *writer, const struct step_notes *step, size_t action) {
    const struct gemm *gemm = &writer->trace->program->gemms[writer->trace->program->actions[action].index];
    const struct note *note = &step->notes[action];
    char kernel[TEXT];
    unsigned id = begin_operation(writer, gemm->accumulate ? "aten::addmm" : "aten::mm", note);
    write_shapes(writer, gemm);
    fprintf(writer->file, ",\"Sequence number\":%zu,\"Fwd thread id\":%d,\"layer\":", gemm->sequence,
            gemm->backward ? 1 : 0);
    quote(writer, gemm->name);
    fputs(",\"written by\":\"gentables\"}}", writer->file);
    snprintf(kernel, sizeof kernel, "%s_%c%c", writer->trace->words->gemm_kernels[gemm->dtype],
             gemm->trans_a ? 'T' : 'N', gemm->trans_b ? 'T' : 'N');
    if (step->is_told) {
        write_told(writer, step, action, id, COMPUTE_STREAM, kernel, write_gemm_work);
        return;
    }
    write_launch(writer, id, note->launch_ns, note->launched_ns, COMPUTE_STREAM, note->work_ns);
    begin_kernel(writer, kernel, id, COMPUTE_STREAM, note->work_ns, note->work_end_ns, note->cpu_ns);
    fputs("}}", writer->file);
}

// ---- collectives --------------------------------------------------------------------------------

static const char *collective_name(const struct collective *collective) {
    static const char *const names[COLLECTIVE_KINDS] = {"allreduce", "_allgather_base",
                                                        "_reduce_scatter_base", "all_to_all"};
    return collective->kind == ALL_TO_ALL && !collective->even ? "all_to_allv" : names[collective->kind];
}

static void write_splits(const struct writer *writer, const char *key, const struct collective *collective,
                         const size_t splits[]) {
    bool has = collective->kind == ALL_TO_ALL && !collective->even;
    fprintf(writer->file, ",\"%s\":\"[", key);
    for (int peer = 0; has && peer < writer->trace->program->ranks; peer++) {
        fprintf(writer->file, "%s%zu", peer > 0 ? ", " : "", splits[peer]);
    }
    fputs("]\"", writer->file);
}

static void write_collective_arguments(const struct writer *writer, const struct collective *collective) {
    fprintf(writer->file,
            ",\"Collective name\":\"%s\",\"In msg nelems\":%zu,\"Out msg nelems\":%zu,\"Group size\":%d,"
            "\"dtype\":\"%s\"",
            collective_name(collective), collective->in_elements, collective->out_elements,
            writer->trace->program->ranks, message_types[collective->dtype]);
    write_splits(writer, "In split size", collective, collective->send);
    write_splits(writer, "Out split size", collective, collective->receive);
    fputs(",\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\","
          "\"Process Group Ranks\":\"[",
          writer->file);
    write_ranks(writer);
    fputs("]\"", writer->file);
}

// "ncclGentables_TWOSHOT_f32", "ncclGentables_MPI_ALL_TO_ALL_f32": names that begin with nccl are known
// everywhere as collectives.
static void kernel_name(const struct writer *writer, const struct collective *collective, char name[TEXT]) {
    static const char *const kinds[COLLECTIVE_KINDS] = {"ALLREDUCE", "ALL_GATHER", "REDUCE_SCATTER",
                                                        "ALL_TO_ALL"};
    const char *transport = writer->trace->words->transport_kernel, *type = dtype_words[collective->dtype];
    bool by_library = strcmp(transport, "MPI") == 0 || strcmp(transport, "NCCL") == 0;
    if (!by_library && collective->kind == ALLREDUCE)
        snprintf(name, TEXT, "ncclGentables_%s_%s", transport, type);
    else
        snprintf(name, TEXT, "ncclGentables_%s%s%s_%s", by_library ? transport : "", by_library ? "_" : "",
                 kinds[collective->kind], type);
}

// From when the first thread began to when the last was done. Threads go on to the next collective while
// others are at this one; on one stream it then begins when this one is over.
static struct span whole_span(struct writer *writer, const struct span *spans) {
    struct span whole = spans[0];
    for (int i = 1; i < writer->trace->words->streams; i++) {
        if (spans[i].begin_ns < whole.begin_ns) whole.begin_ns = spans[i].begin_ns;
        if (spans[i].end_ns > whole.end_ns) whole.end_ns = spans[i].end_ns;
        if (whole.cpu_ns != NO_CPU) whole.cpu_ns += spans[i].cpu_ns;
    }
    if (whole.begin_ns < writer->communicated_ns) whole.begin_ns = writer->communicated_ns;
    if (whole.end_ns < whole.begin_ns) whole.end_ns = whole.begin_ns;
    writer->communicated_ns = whole.end_ns;
    return whole;
}

// Kernels that are not called as everybody knows collectives are called as ours; what is copied for one says
// nothing of it.
static void write_collective_work(struct writer *writer, const struct work *work, unsigned id,
                                  const void *of) {
    const struct collective *collective = of;
    char kernel[TEXT];
    kernel_name(writer, collective, kernel);
    bool has_name = work->name != NULL && strncmp(work->name, "nccl", 4) == 0;
    begin_told(writer, work, name_of(work, has_name ? work->name : kernel), id, COMMUNICATION_STREAM);
    if (work->kind == WORK_KERNEL) write_collective_arguments(writer, collective);
    fputs("}}", writer->file);
}

static void write_collective(struct writer *writer, const struct collective *collective, unsigned id,
                             const struct note *note, const struct span *spans) {
    char kernel[TEXT];
    struct span whole = whole_span(writer, spans);
    kernel_name(writer, collective, kernel);
    write_launch(writer, id, note->launch_ns, note->launched_ns, COMMUNICATION_STREAM, whole.begin_ns);
    begin_kernel(writer, kernel, id, COMMUNICATION_STREAM, whole.begin_ns, whole.end_ns, whole.cpu_ns);
    write_collective_arguments(writer, collective);
    fputs("}}", writer->file);
    for (int i = 1; i < writer->trace->words->streams; i++) { // what further threads did of it
        begin_complete(writer, "gpu_user_annotation", collective->name, writer->trace->program->rank,
                       COMMUNICATION_STREAM + i, spans[i].begin_ns, spans[i].end_ns);
        fprintf(writer->file, ",\"args\":{\"External id\":%u", id);
        print_us(writer, "cpu time (us)", spans[i].cpu_ns);
        fputs("}}", writer->file);
    }
}

static void write_post(struct writer *writer, const struct step_notes *step, size_t action) {
    const struct program *program = writer->trace->program;
    int index = program->actions[action].index;
    const struct collective *collective = &program->collectives[index];
    const struct note *note = &step->notes[action];
    unsigned id = begin_operation(writer, "record_param_comms", note);
    fprintf(writer->file,
            ",\"Input Dims\":[[%zu]],\"Input type\":[\"%s\"],\"Input Strides\":[[1]],"
            "\"Concrete Inputs\":[\"\"],\"Rank\":%d",
            collective->in_elements, input_types[collective->dtype], program->rank);
    write_collective_arguments(writer, collective);
    fputs(",\"bucket\":", writer->file);
    quote(writer, collective->name);
    fputs("}}", writer->file);
    if (step->is_told)
        write_told(writer, step, action, id, COMMUNICATION_STREAM, collective, write_collective_work);
    else
        write_collective(writer, collective, id, note, &step->spans[index * MAX_THREADS]);
}

static void write_await(struct writer *writer, int index, uint64_t begin_ns, uint64_t end_ns) {
    const struct trace *trace = writer->trace;
    begin_complete(writer, "cuda_runtime", "gentablesWait", trace->pid, trace->tid, begin_ns, end_ns);
    fprintf(writer->file, ",\"args\":{\"cbid\":0,\"correlation\":%u,\"bucket\":", ++writer->correlation);
    quote(writer, trace->program->collectives[index].name);
    fputs("}}", writer->file);
}

// ---- steps --------------------------------------------------------------------------------------

static void write_step(struct writer *writer, size_t number) {
    const struct trace *trace = writer->trace;
    const struct step_notes *step = &trace->steps[number];
    char name[TEXT];
    snprintf(name, sizeof name, "ProfilerStep#%zu", number);
    begin_complete(writer, "user_annotation", name, trace->pid, trace->tid, step->begin_ns, step->end_ns);
    unsigned id = ++writer->events;
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"Record function id\":0,\"Ev Idx\":%u}}", id,
            id - 1);
    for (int stream = 0; stream <= trace->words->streams; stream++) {
        begin_complete(writer, "gpu_user_annotation", name, trace->program->rank,
                       stream == 0 ? COMPUTE_STREAM : COMMUNICATION_STREAM + stream - 1, step->begin_ns,
                       step->end_ns);
        fprintf(writer->file, ",\"args\":{\"External id\":%u}}", id);
    }
    writer->work = 0;
    for (size_t i = 0; i < trace->program->action_count; i++) {
        struct action action = trace->program->actions[i];
        if (action.kind == DO_GEMM)
            write_gemm(writer, step, i);
        else if (action.kind == DO_POST)
            write_post(writer, step, i);
        else
            write_await(writer, action.index, step->notes[i].begin_ns, step->notes[i].end_ns);
        while (writer->work < step->work_count && step->works[writer->work].action <= i) writer->work++;
    }
    for (int i = 0; i < step->rest_count; i++)
        write_await(writer, step->rests[i].collective, step->rests[i].begin_ns, step->rests[i].end_ns);
}

static int write_all(const struct trace *trace, FILE *file) {
    struct writer writer = {.trace = trace, .file = file, .first = true};
    write_header(&writer);
    write_names(&writer);
    for (size_t i = 0; i < trace->step_count; i++) write_step(&writer, i);
    fputs("\n]}\n", file);
    return ferror(file) ? EIO : 0;
}

// The name that a file has until it is whole; NULL: no memory.
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
