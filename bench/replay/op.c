// Reads request lines of replays; see op.h.
#include "op.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const scaling_names[SCALINGS] = {"none", "tensor", "row", "block"};
const char *const block_names[BLOCKS] = {"unknown", "1x128", "128x128", "1x32", "1x16"};
const char *const addend_names[ADDENDS] = {"none", "row", "matrix"};
const char *const gradient_names[GRADIENTS] = {"input", "filter", "bias"};
const char *const op_kind_names[OP_KINDS] = {"gemm", "convolution", "convolution_backward"};

static const double LARGEST = 1e15; // of sizes and strides; far below the range of int64_t

// ---- fields ---------------------------------------------------------------------------------------------

enum { MOST_FIELDS = 40 };

// The words `name=value` of a line; a field is used once read.
struct fields {
    const char *names[MOST_FIELDS], *values[MOST_FIELDS];
    bool used[MOST_FIELDS];
    int count;
    const char *wrong; // the first field that is missing or cannot be read
};

static const char *take(struct fields *fields, const char *name) {
    for (int i = 0; i < fields->count; i++) {
        if (strcmp(fields->names[i], name) != 0) continue;
        fields->used[i] = true;
        return fields->values[i];
    }
    return NULL;
}

static void complain(struct fields *fields, const char *name) {
    if (fields->wrong == NULL) fields->wrong = name;
}

// Reads a list of integers such as "2,2", each at least `least`. Returns their number; 0: it is no such list.
static int read_integers(const char *text, int64_t least, int most, int64_t numbers[]) {
    for (int count = 0; count < most; count++) {
        char *end;
        errno = 0;
        long long number = strtoll(text, &end, 10);
        if (end == text || errno != 0 || number < least || (double)number > LARGEST) return 0;
        numbers[count] = number;
        if (*end == '\0') return count + 1;
        if (*end != ',') return 0;
        text = end + 1;
    }
    return 0;
}

static int64_t take_integer(struct fields *fields, const char *name, int64_t least) {
    int64_t number = least;
    const char *text = take(fields, name);
    if (text == NULL || read_integers(text, least, 1, &number) != 1) complain(fields, name);
    return number;
}

static double take_number(struct fields *fields, const char *name, double otherwise) {
    const char *text = take(fields, name);
    if (text == NULL) return otherwise;
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number)) complain(fields, name);
    return number;
}

static int take_name(struct fields *fields, const char *name, const char *const names[], int count) {
    const char *text = take(fields, name);
    for (int i = 0; i < count; i++) {
        if (text != NULL && strcmp(names[i], text) == 0) return i;
    }
    complain(fields, name);
    return 0;
}

static bool take_flag(struct fields *fields, const char *name) {
    static const char *const flags[] = {"0", "1"};
    return take_name(fields, name, flags, 2) == 1;
}

// One number for each spatial dimension; entries beyond keep their values.
static void take_spatial(struct fields *fields, const char *name, int64_t least, int spatial,
                         int64_t numbers[MOST_SPATIAL]) {
    const char *text = take(fields, name);
    int64_t read[MOST_SPATIAL];
    if (text == NULL || read_integers(text, least, MOST_SPATIAL, read) != spatial)
        complain(fields, name);
    else
        memcpy(numbers, read, (size_t)spatial * sizeof *numbers);
}

// ---- the kinds ------------------------------------------------------------------------------------------

static int refuse(char reason[], const char *why) {
    snprintf(reason, REASON_SIZE, "%s", why);
    return -1;
}

// The type of the addend: by default float16 beside a result of 8 bits, as in PyTorch without a bias, and
// bfloat16 for a row beside float32, as cuBLASLt requires, or else that of the result.
static enum data_type read_addend_type(struct fields *fields, const struct gemm *gemm) {
    if (take(fields, "addend_dtype") != NULL)
        return (enum data_type)take_name(fields, "addend_dtype", data_type_names, DATA_TYPES);
    if (is_float8(gemm->out_type)) return FLOAT16;
    return gemm->out_type == FLOAT32 && gemm->addend == ADD_ROW ? BFLOAT16 : gemm->out_type;
}

// Makes alpha so small that no element exceeds the largest number of a result of 8 bits: a library would
// store that number, and the check would report a wrong result. The division is exact.
static void fit(struct gemm *gemm) {
    double largest = gemm->out_type == FLOAT8_E5M2 ? 57344 : 448;
    double added = gemm->addend == ADD_NOTHING ? 0 : fabs(gemm->beta) * LARGEST_VALUE;
    double sum = fabs(gemm->alpha) * (double)gemm->k * LARGEST_VALUE * LARGEST_VALUE;
    if (gemm->scaling != SCALE_TENSOR) sum *= LARGEST_SCALE * LARGEST_SCALE;
    for (; sum + added > largest && sum > 1; sum /= 2) gemm->alpha /= 2;
}

// Fields that only scaled products have.
static void read_scaling(struct fields *fields, enum data_type type, struct gemm *gemm) {
    if (take(fields, "scaling") == NULL) return;
    gemm->scaling = (enum scaling)take_name(fields, "scaling", scaling_names, SCALINGS);
    gemm->out_type = (enum data_type)take_name(fields, "out_dtype", data_type_names, DATA_TYPES);
    gemm->fast_accumulation = take_flag(fields, "fast_accumulation");
    enum data_type addend_type = read_addend_type(fields, gemm);
    gemm->addend_type = is_small(type) ? addend_type : gemm->out_type;
    gemm->scales_out = take(fields, "scale_out") != NULL && take_flag(fields, "scale_out");
    if (is_float8(gemm->out_type)) fit(gemm);
    if (gemm->scaling != SCALE_BLOCK || take(fields, "block_a") == NULL) return;
    gemm->block_a = (enum block)take_name(fields, "block_a", block_names, BLOCKS);
    gemm->block_b = (enum block)take_name(fields, "block_b", block_names, BLOCKS);
}

static int read_gemm(struct fields *fields, enum data_type type, struct gemm *gemm, char reason[]) {
    gemm->batch = take_integer(fields, "batch", 1);
    gemm->m = take_integer(fields, "m", 1);
    gemm->n = take_integer(fields, "n", 1);
    gemm->k = take_integer(fields, "k", 1);
    gemm->trans_a = take_flag(fields, "trans_a");
    gemm->trans_b = take_flag(fields, "trans_b");
    gemm->lda = take_integer(fields, "lda", 1);
    gemm->ldb = take_integer(fields, "ldb", 1);
    gemm->stride_a = take_integer(fields, "stride_a", 0);
    gemm->stride_b = take_integer(fields, "stride_b", 0);
    gemm->addend = (enum addend)take_name(fields, "addend", addend_names, ADDENDS);
    gemm->alpha = take_number(fields, "alpha", 1);
    gemm->beta = take_number(fields, "beta", 1);
    read_scaling(fields, type, gemm);
    if (fields->wrong != NULL) return 0; // the caller reports it
    if (gemm->lda < (gemm->trans_a ? gemm->m : gemm->k)) return refuse(reason, "lda is below A's width");
    if (gemm->ldb < (gemm->trans_b ? gemm->k : gemm->n)) return refuse(reason, "ldb is below B's width");
    bool is_even = ((gemm->k | gemm->lda | gemm->ldb | gemm->stride_a | gemm->stride_b) & 1) == 0;
    if (is_float4(type) && (gemm->trans_a || !gemm->trans_b || !is_even))
        return refuse(reason, "operands of 4 bits are not in pairs along K");
    if (is_float4(gemm->out_type)) return refuse(reason, "results of 4 bits are not replayed");
    return 0;
}

// The sizes of the result; false: the op has none.
static bool find_output(struct convolution *at) {
    for (int i = 0; i < MOST_SPATIAL; i++) {
        int64_t reach = at->dilation[i] * (at->filter[i] - 1) + 1;
        int64_t room = at->input[i] + 2 * at->padding[i] - reach;
        at->output[i] = room < 0 ? 0 : room / at->stride[i] + 1;
        if (at->transposed) {
            at->output[i] = (at->input[i] - 1) * at->stride[i] - 2 * at->padding[i] + reach;
            at->output[i] += at->output_padding[i];
        }
        if (at->output[i] < 1) return false;
    }
    return true;
}

// Reads the gradients of a backward convolution: a list of their names.
static unsigned take_gradients(struct fields *fields) {
    static const char name[] = "gradients";
    const char *text = take(fields, name);
    unsigned gradients = 0;
    for (size_t length; text != NULL; text = text[length] == ',' ? text + length + 1 : NULL) {
        int which = 0;
        length = strcspn(text, ",");
        while (which < GRADIENTS &&
               (strlen(gradient_names[which]) != length || strncmp(gradient_names[which], text, length) != 0))
            which++;
        if (which == GRADIENTS || (gradients >> which & 1) != 0) complain(fields, name);
        gradients |= 1u << which;
    }
    if (gradients == 0) complain(fields, name);
    return gradients;
}

static int read_convolution(struct fields *fields, enum op_kind kind, struct convolution *at, char reason[]) {
    for (int i = 0; i < MOST_SPATIAL; i++) {
        at->input[i] = at->filter[i] = at->stride[i] = at->dilation[i] = 1;
        at->padding[i] = at->output_padding[i] = 0;
    }
    at->spatial = (int)take_integer(fields, "spatial", 1);
    if (at->spatial > MOST_SPATIAL) return refuse(reason, "spatial is above 3");
    at->batch = take_integer(fields, "batch", 1);
    at->in_channels = take_integer(fields, "in_channels", 1);
    at->out_channels = take_integer(fields, "out_channels", 1);
    at->groups = take_integer(fields, "groups", 1);
    take_spatial(fields, "input", 1, at->spatial, at->input);
    take_spatial(fields, "filter", 1, at->spatial, at->filter);
    take_spatial(fields, "stride", 1, at->spatial, at->stride);
    take_spatial(fields, "padding", 0, at->spatial, at->padding);
    take_spatial(fields, "dilation", 1, at->spatial, at->dilation);
    take_spatial(fields, "output_padding", 0, at->spatial, at->output_padding);
    at->transposed = take_flag(fields, "transposed");
    for (int i = 0; i < MOST_SPATIAL && !at->transposed; i++) at->output_padding[i] = 0; // it has none
    at->has_bias = kind == OP_CONVOLUTION && take_flag(fields, "bias");
    at->gradients = kind == OP_CONVOLUTION ? 0 : take_gradients(fields);
    at->input_channels_last = take_flag(fields, "input_channels_last");
    at->filter_channels_last = take_flag(fields, "filter_channels_last");
    if (fields->wrong != NULL) return 0;
    if (at->in_channels % at->groups != 0 || at->out_channels % at->groups != 0)
        return refuse(reason, "channels are no multiple of groups");
    return find_output(at) ? 0 : refuse(reason, "the filter is larger than the input");
}

struct convolution convolution_of_gradient(const struct convolution *at) {
    struct convolution made = *at;
    made.in_channels = at->out_channels;
    made.out_channels = at->in_channels;
    made.transposed = !at->transposed;
    made.has_bias = false;
    made.gradients = 0;
    for (int i = 0; i < MOST_SPATIAL; i++) {
        int64_t reach = at->dilation[i] * (at->filter[i] - 1) + 1;
        int64_t least = (at->output[i] - 1) * at->stride[i] - 2 * at->padding[i] + reach;
        made.input[i] = at->output[i];
        made.output[i] = at->input[i];
        if (made.transposed) made.output_padding[i] = at->input[i] - least;
    }
    return made;
}

// ---- lines ----------------------------------------------------------------------------------------------

// Splits the line into fields. -1: a word is no field.
static int cut(char *words, struct fields *fields, char reason[]) {
    char *rest = NULL;
    *fields = (struct fields){.count = 0};
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (equals == NULL || fields->count == MOST_FIELDS) {
            snprintf(reason, REASON_SIZE, "%.60s is no field name=value", word);
            return -1;
        }
        *equals = '\0';
        fields->names[fields->count] = word;
        fields->values[fields->count++] = equals + 1;
    }
    return 0;
}

static int check_fields(const struct fields *fields, char reason[]) {
    if (fields->wrong != NULL) {
        snprintf(reason, REASON_SIZE, "the field %s is missing or wrong", fields->wrong);
        return -1;
    }
    for (int i = 0; i < fields->count; i++) {
        if (fields->used[i]) continue;
        snprintf(reason, REASON_SIZE, "there is no field %.60s", fields->names[i]);
        return -1;
    }
    return 0;
}

// Cuts the last field off the line, which may contain spaces, and returns it. It is part of the line.
static const char *cut_note(char *line) {
    static const char key[] = " note=";
    char *note = strstr(line, key);
    if (note == NULL) return "";
    *note = '\0';
    return note + sizeof key - 1;
}

static int read_threads(struct fields *fields) {
    if (take(fields, "threads") == NULL) return 0;
    int64_t threads = take_integer(fields, "threads", 1);
    if (threads > MOST_THREADS) complain(fields, "threads");
    return threads > MOST_THREADS ? 0 : (int)threads;
}

// The kind of a line that begins with a word of this length; OP_KINDS: none.
static enum op_kind kind_of(const char *line, size_t length) {
    int kind = 0;
    while (kind < OP_KINDS &&
           (strlen(op_kind_names[kind]) != length || strncmp(op_kind_names[kind], line, length) != 0))
        kind++;
    return (enum op_kind)kind;
}

int op_read(char *line, struct op *op, char reason[REASON_SIZE]) {
    struct fields fields;
    const char *note = cut_note(line);
    size_t length = strcspn(line, " ");
    enum op_kind kind = kind_of(line, length);
    if (kind == OP_KINDS) {
        snprintf(reason, REASON_SIZE, "%.*s is neither gemm nor convolution",
                 (int)(length < 40 ? length : 40), line);
        return -1;
    }
    if (cut(line + length, &fields, reason) != 0) return -1;
    *op = (struct op){.kind = kind};
    snprintf(op->note, sizeof op->note, "%s", note);
    const char *id = take(&fields, "id");
    snprintf(op->id, sizeof op->id, "%s", id != NULL ? id : "op");
    op->type = (enum data_type)take_name(&fields, "dtype", data_type_names, DATA_TYPES);
    op->sampling_us = take_number(&fields, "sampling_us", 10000);
    op->limit_us = take_number(&fields, "limit_us", 0);
    double least = take_number(&fields, "min_samples", 5), most = take_number(&fields, "max_samples", 50);
    if (!(least >= 1 && least <= (double)MOST_SAMPLES && most >= 1 && most <= (double)MOST_SAMPLES))
        return refuse(reason, "min_samples and max_samples have to be 1 to 1000000");
    op->min_samples = (size_t)least;
    op->max_samples = (size_t)most;
    op->threads = read_threads(&fields);
    int status = kind == OP_GEMM ? read_gemm(&fields, op->type, &op->gemm, reason)
                                 : read_convolution(&fields, kind, &op->convolution, reason);
    return status != 0 ? status : check_fields(&fields, reason);
}

double op_flops(const struct op *op) {
    if (op->kind == OP_GEMM) {
        const struct gemm *gemm = &op->gemm;
        double products = (double)gemm->m * (double)gemm->n * (double)gemm->batch;
        return products * (2 * (double)gemm->k + (gemm->addend != ADD_NOTHING ? 1 : 0));
    }
    const struct convolution *at = &op->convolution;
    double products =
        (double)at->batch * (double)at->in_channels * (double)at->out_channels / (double)at->groups;
    double out = (double)at->batch * (double)at->out_channels;
    for (int i = 0; i < MOST_SPATIAL; i++) {
        products *= (double)(at->transposed ? at->input[i] : at->output[i]) * (double)at->filter[i];
        out *= (double)at->output[i];
    }
    if (op->kind == OP_CONVOLUTION) return 2 * products + (at->has_bias ? out : 0);
    int count = has_gradient(at, OF_INPUT) + has_gradient(at, OF_FILTER);
    return 2 * products * count + (has_gradient(at, OF_BIAS) ? out : 0);
}
