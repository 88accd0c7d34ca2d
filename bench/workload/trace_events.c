// Writes single events of a trace; see trace_events.h.
#include "trace_events.h"

#include <string.h>

#include "protocol/json_text.h"

void trace_print_us(const struct trace_writer *writer, const char *key, uint64_t ns) {
    fprintf(writer->file, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

static uint64_t since_base(const struct trace_writer *writer, uint64_t ns) {
    return ns - writer->base_ns;
}

static void begin_event(struct trace_writer *writer, const char *phase) {
    fprintf(writer->file, "%s\n{\"ph\":\"%s\"", writer->first ? "" : ",", phase);
    writer->first = false;
}

void trace_begin_complete(struct trace_writer *writer, const char *category, const char *name, int pid,
                          int tid, uint64_t begin_ns, uint64_t end_ns) {
    begin_event(writer, "X");
    fprintf(writer->file, ",\"cat\":\"%s\",\"name\":", category);
    json_text_write(writer->file, name);
    fprintf(writer->file, ",\"pid\":%d,\"tid\":%d", pid, tid);
    trace_print_us(writer, "ts", since_base(writer, begin_ns));
    trace_print_us(writer, "dur", end_ns - begin_ns);
}

void trace_metadata(struct trace_writer *writer, const char *name, int pid, int tid, const char *key,
                    const char *value) {
    begin_event(writer, "M");
    fprintf(writer->file, ",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":0.000,\"args\":{\"%s\":", name, pid,
            tid, key);
    if (strcmp(key, "sort_index") == 0)
        fputs(value, writer->file);
    else
        json_text_write(writer->file, value);
    fputs("}}", writer->file);
}

// ---- an action ----------------------------------------------------------------------------------

unsigned trace_begin_operation(struct trace_writer *writer, const char *name, const struct note *note) {
    trace_begin_complete(writer, "cpu_op", name, writer->pid, writer->tid, note->begin_ns, note->end_ns);
    unsigned id = ++writer->events;
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"Record function id\":0,\"Ev Idx\":%u", id, id - 1);
    return id;
}

void trace_write_launch(struct trace_writer *writer, unsigned id, uint64_t from_ns, uint64_t until_ns,
                        int stream, uint64_t work_ns) {
    unsigned correlation = ++writer->correlation;
    trace_begin_complete(writer, "cuda_runtime", "gentablesLaunch", writer->pid, writer->tid, from_ns,
                         from_ns > until_ns ? from_ns : until_ns);
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"cbid\":0,\"correlation\":%u}}", id, correlation);
    begin_event(writer, "s");
    fprintf(writer->file, ",\"id\":%u,\"pid\":%d,\"tid\":%d", correlation, writer->pid, writer->tid);
    trace_print_us(writer, "ts", since_base(writer, from_ns));
    fputs(",\"cat\":\"ac2g\",\"name\":\"ac2g\"}", writer->file);
    begin_event(writer, "f");
    fprintf(writer->file, ",\"id\":%u,\"pid\":%d,\"tid\":%d", correlation, writer->rank, stream);
    trace_print_us(writer, "ts", since_base(writer, work_ns));
    fputs(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}", writer->file);
}

// The work of the last launch, open for more arguments.
static void begin_work(struct trace_writer *writer, const char *category, const char *name, unsigned id,
                       int stream, uint64_t begin_ns, uint64_t end_ns) {
    trace_begin_complete(writer, category, name, writer->rank, stream, begin_ns, end_ns);
    fprintf(writer->file, ",\"args\":{\"External id\":%u,\"device\":%d,\"stream\":%d,\"correlation\":%u", id,
            writer->rank, stream, writer->correlation);
}

void trace_begin_kernel(struct trace_writer *writer, const char *name, unsigned id, int stream,
                        uint64_t begin_ns, uint64_t end_ns, uint64_t cpu_ns) {
    begin_work(writer, "kernel", name, id, stream, begin_ns, end_ns);
    if (cpu_ns == NO_CPU) return;
    fputs(",\"context\":0,\"grid\":[1,1,1],\"block\":[1,1,1]", writer->file);
    trace_print_us(writer, "cpu time (us)", cpu_ns);
}

void trace_begin_activity(struct trace_writer *writer, const struct gpu_activity *activity, const char *name,
                          unsigned id, int stream) {
    static const char *const categories[] = {
        [ACTIVITY_KERNEL] = "kernel", [ACTIVITY_MEMCPY] = "gpu_memcpy", [ACTIVITY_MEMSET] = "gpu_memset"};
    const int32_t *grid = activity->grid, *block = activity->block;
    begin_work(writer, categories[activity->kind], name, id, stream, activity->begin_ns, activity->end_ns);
    fprintf(writer->file, ",\"context\":%u", activity->context);
    if (activity->kind == ACTIVITY_KERNEL)
        fprintf(writer->file,
                ",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"registers per thread\":%u,\"shared memory\":%u",
                grid[0], grid[1], grid[2], block[0], block[1], block[2], activity->registers,
                activity->shared_bytes);
    else
        fprintf(writer->file, ",\"bytes\":%llu", (unsigned long long)activity->bytes);
}
