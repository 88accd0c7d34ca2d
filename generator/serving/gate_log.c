// Reads one gate log; see gate_log.h. What such files mostly hold is white space and short numbers. A writer
// repeats what it puts between two numbers, so the scanner compares that with what it found the last time, a
// word at once, and takes numbers of up to seven characters from one word without a branch on their length;
// everything else goes a slower way to the same result.
#include "gate_log.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/number.h"

enum {
    GAP_SIZE = 16,          // a longer gap is not remembered
    PADDING = GAP_SIZE + 8, // NULs after a text, so that whole words can be read anywhere in it
    MOST_EXPERTS = 65536,
    FEWEST_NUMBERS = 1024,
    DEEPEST = 64, // nesting of values that nobody reads
};

// What a load can be: within these limits no sum overflows and no square underflows.
static const double most_load = 1e15, least_load = 1e-100;

enum key { STEP, NUM_TOKENS, EXPERT_LOADS, KEYS };
static const char *const key_names[KEYS] = {"step", "num_tokens", "expert_loads"};

struct scanner {
    const char *path, *begin, *at, *end; // from `end` on PADDING NULs
    const char *list;                    // the key whose values are being read
    uint64_t gap[2], gap_mask[2];        // what stood between the last two numbers, and where it counts
    size_t gap_length;
    struct gate_scratch *scratch;
    struct gate_log *log;
    struct problem *problem;
    size_t step_capacity;
    bool seen[KEYS];
    size_t lengths[KEYS];
};

// ---- errors -----------------------------------------------------------------------------------

// PATH: byte N: text. N counts from 0.
__attribute__((format(printf, 2, 3))) static bool fail_at(const struct scanner *scanner, const char *format,
                                                          ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return problem_set(scanner->problem, "%s: byte %zu: %s", scanner->path,
                       (size_t)(scanner->at - scanner->begin), text);
}

static bool fail_memory(const struct scanner *scanner) {
    return problem_set(scanner->problem, "%s: not enough memory for it", scanner->path);
}

// What stands at `at`, in words.
static const char *describe(const struct scanner *scanner) {
    const char *at = scanner->at;
    if (at >= scanner->end) return "the end of the file";
    if (strncmp(at, "null", 4) == 0) return "null";
    if (strncmp(at, "NaN", 3) == 0 || strncmp(at, "nan", 3) == 0) return "NaN";
    if (strncmp(at, "Infinity", 8) == 0 || strncmp(at, "-Infinity", 9) == 0) return "an infinite number";
    switch (*at) {
    case '"': return "a text";
    case 't':
    case 'f': return "a boolean";
    case '{': return "an object";
    case '[': return "a list";
    case ']': return "the end of a list";
    case '}': return "the end of an object";
    case ',': return "a comma";
    default: break;
    }
    return (*at >= '0' && *at <= '9') || *at == '-' ? "a number" : "what is no JSON";
}

static bool fail_expected(const struct scanner *scanner, const char *what) {
    return fail_at(scanner, "%s, where %s would be right", describe(scanner), what);
}

// ---- numbers ----------------------------------------------------------------------------------

static inline uint64_t load_word(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static bool ends_number(char next) {
    return next <= ',' || next == ']'; // white space, comma, and what is refused in a list anyway
}

// Reads a number of at most seven characters, digits or digits.digits. Returns where it ends, or NULL where
// it is another one, or none.
static inline const char *read_short(const char *at, double *value) {
    static const double powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    const uint64_t ones = 0x0101010101010101ULL;
    uint64_t word = load_word(at), digits = word ^ ones * '0';
    // The top bit of every byte that is no digit.
    uint64_t others = (((digits & ones * 0x7F) + ones * (0x80 - 10)) | digits) & ones * 0x80;
    if (others == 0) return NULL;
    unsigned whole = (unsigned)__builtin_ctzll(others) - 7, end = whole; // in bits
    if (whole == 0 || (whole > 8 && (char)word == '0')) return NULL;
    uint64_t joined = digits;
    unsigned count = whole;
    if ((char)(word >> whole) == '.') {
        others &= others - 1;
        if (others == 0) return NULL;
        end = (unsigned)__builtin_ctzll(others) - 7;
        count = end - 8;
        if (count == whole) return NULL;
        uint64_t before = ((uint64_t)1 << whole) - 1;
        joined = (digits & before) | ((digits >> 8) & ~before);
    }
    if (!ends_number((char)(word >> end))) return NULL;
    // Both operands are exact, so that the quotient is rounded once.
    *value = (double)(int64_t)number_join_digits(joined << (64 - count)) / powers[(count - whole) / 8];
    return at + end / 8;
}

static const char *skip_digits(const char *at) {
    while (*at >= '0' && *at <= '9') at++;
    return at;
}

// Where the JSON number at `at` ends; NULL: there is none.
static const char *end_of_number(const char *at) {
    if (*at == '-') at++;
    const char *whole = at;
    at = skip_digits(at);
    if (at == whole || (*whole == '0' && at > whole + 1)) return NULL;
    if (*at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction);
        if (at == fraction) return NULL;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-') at++;
        const char *exponent = at;
        at = skip_digits(exponent);
        if (at == exponent) return NULL;
    }
    return at;
}

// Reads any number.
static bool read_long(struct scanner *scanner, double *value) {
    const char *end = end_of_number(scanner->at);
    if (end == NULL) {
        return fail_at(scanner, "%s in %s, where a number of JSON would be right", describe(scanner),
                       scanner->list);
    }
    if (!number_parse(scanner->at, end, value)) {
        return fail_at(scanner, "a number in %s that is too large or too long", scanner->list);
    }
    if (*value < 0) return fail_at(scanner, "a number below zero in %s", scanner->list);
    scanner->at = end;
    return true;
}

// ---- what stands between ----------------------------------------------------------------------

static inline bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline void skip_space(struct scanner *scanner) {
    const char *at = scanner->at;
    while (is_space(*at)) at++;
    scanner->at = at;
}

static bool take(struct scanner *scanner, char wanted, const char *what) {
    skip_space(scanner);
    if (*scanner->at != wanted) return fail_expected(scanner, what);
    scanner->at++;
    return true;
}

// Goes behind a comma, or `close`. Returns false where there is neither.
static bool take_next(struct scanner *scanner, char close, const char *what, bool *more) {
    skip_space(scanner);
    *more = *scanner->at == ',';
    if (!*more && *scanner->at != close) return fail_expected(scanner, what);
    scanner->at++;
    if (*more) skip_space(scanner);
    return true;
}

static bool open_list(struct scanner *scanner, bool *empty) {
    if (!take(scanner, '[', "a list")) return false;
    skip_space(scanner);
    *empty = *scanner->at == ']';
    if (*empty) scanner->at++;
    return true;
}

static void remember_gap(struct scanner *scanner, const char *begin) {
    size_t length = (size_t)(scanner->at - begin);
    if (length > GAP_SIZE) return;
    for (size_t i = 0; i < 2; i++) {
        size_t counted = length <= 8 * i ? 0 : length - 8 * i;
        scanner->gap_mask[i] = counted == 0 ? 0 : UINT64_MAX >> (counted >= 8 ? 0 : 64 - 8 * counted);
        scanner->gap[i] = load_word(begin + 8 * i);
    }
    scanner->gap_length = length;
}

// Whether the gap at `at` is the one that is remembered.
static inline bool is_same_gap(const struct scanner *scanner) {
    uint64_t first = (load_word(scanner->at) ^ scanner->gap[0]) & scanner->gap_mask[0];
    uint64_t second = (load_word(scanner->at + 8) ^ scanner->gap[1]) & scanner->gap_mask[1];
    return (first | second) == 0;
}

// ---- lists ------------------------------------------------------------------------------------

// Room for more than `count` numbers.
static bool grow_numbers(struct scanner *scanner, size_t count) {
    struct gate_scratch *scratch = scanner->scratch;
    if (count < scratch->number_capacity) return true;
    size_t capacity = count < FEWEST_NUMBERS ? FEWEST_NUMBERS : 2 * count;
    double *grown = realloc(scratch->numbers, capacity * sizeof *grown);
    if (grown == NULL) return fail_memory(scanner);
    scratch->numbers = grown;
    scratch->number_capacity = capacity;
    return true;
}

// Reads a list of numbers to scratch->numbers.
static bool read_numbers(struct scanner *scanner, size_t *count) {
    bool more;
    *count = 0;
    if (!open_list(scanner, &more)) return false;
    for (more = !more; more;) {
        if (!grow_numbers(scanner, *count)) return false;
        double *value = &scanner->scratch->numbers[(*count)++];
        const char *end = read_short(scanner->at, value);
        if (end != NULL) {
            scanner->at = end;
        } else if (!read_long(scanner, value)) {
            return false;
        }
        const char *gap = scanner->at;
        if (scanner->gap_length > 0 && is_same_gap(scanner) && !is_space(gap[scanner->gap_length])) {
            scanner->at += scanner->gap_length;
            continue;
        }
        if (!take_next(scanner, ']', "a comma or the end of the list", &more)) return false;
        if (more) remember_gap(scanner, gap);
    }
    return true;
}

static bool grow_steps(struct scanner *scanner) {
    struct gate_log *log = scanner->log;
    if (log->steps < scanner->step_capacity) return true;
    // The other lists, where they came before, tell how many there will be.
    size_t told = scanner->lengths[STEP] > scanner->lengths[NUM_TOKENS] ? scanner->lengths[STEP]
                                                                        : scanner->lengths[NUM_TOKENS];
    size_t capacity = log->steps < told ? told : 2 * log->steps + 1;
    double *grown = realloc(log->imbalance, capacity * sizeof *grown);
    if (grown == NULL) return fail_memory(scanner);
    log->imbalance = grown;
    scanner->step_capacity = capacity;
    return true;
}

static bool start_loads(struct scanner *scanner, size_t experts) {
    if (experts == 0) return fail_at(scanner, "a step of expert_loads without experts");
    if (experts > MOST_EXPERTS) {
        return fail_at(scanner, "more than %d experts in expert_loads", (int)MOST_EXPERTS);
    }
    scanner->log->experts = experts;
    scanner->log->loads = calloc(2 * experts, sizeof(double));
    return scanner->log->loads != NULL || fail_memory(scanner);
}

// Takes the loads of one step, in scratch->numbers, into the log. The loops are apart so that the compiler
// can make vectors of what has no order.
static bool add_step(struct scanner *scanner) {
    struct gate_log *log = scanner->log;
    const double *restrict loads = scanner->scratch->numbers;
    double *restrict sums = log->loads, *restrict lost = log->loads + log->experts;
    size_t experts = log->experts;
    double total = 0, squares = 0;
    uint32_t idle = 0, wrong = 0;
    for (size_t i = 0; i < experts; i++) gate_add(&sums[i], &lost[i], loads[i]);
    for (size_t i = 0; i < experts; i++) {
        uint32_t is_none = loads[i] == 0;
        idle += is_none;
        wrong |= (uint32_t)(loads[i] > most_load) | ((uint32_t)(loads[i] < least_load) & ~is_none);
    }
    if ((wrong & 1) != 0) return fail_at(scanner, "a step with a load above 1e15 or below 1e-100");
    for (size_t i = 0; i < experts; i++) total += loads[i];
    double mean = total / (double)experts;
    for (size_t i = 0; i < experts; i++) squares += (loads[i] - mean) * (loads[i] - mean);
    // The population's deviation over the mean, with a division less.
    log->imbalance[log->steps++] = total > 0 ? sqrt(squares * (double)experts) / total : -1;
    log->idle += idle;
    if (idle > log->most_idle) log->most_idle = idle;
    return true;
}

// Takes the step whose list of `experts` loads was just read.
static bool take_step(struct scanner *scanner, size_t experts) {
    struct gate_log *log = scanner->log;
    if (log->loads == NULL && !start_loads(scanner, experts)) return false;
    if (experts != log->experts) {
        return fail_at(scanner, "%zu experts in step %zu of expert_loads, %zu in those before", experts,
                       log->steps + 1, log->experts);
    }
    return grow_steps(scanner) && add_step(scanner);
}

static bool read_expert_loads(struct scanner *scanner) {
    bool more;
    size_t experts;
    if (!open_list(scanner, &more)) return false;
    for (more = !more; more;) {
        const char *begin = scanner->at;
        if (!read_numbers(scanner, &experts)) return false;
        const char *end = scanner->at;
        scanner->at = begin; // what errors name
        if (!take_step(scanner, experts)) return false;
        scanner->at = end;
        if (!take_next(scanner, ']', "a comma or the end of expert_loads", &more)) return false;
    }
    scanner->lengths[EXPERT_LOADS] = scanner->log->steps;
    return true;
}

// ---- what nobody reads ------------------------------------------------------------------------

static bool skip_text(struct scanner *scanner) {
    const char *at = scanner->at + 1;
    for (; *at != '"'; at++) {
        if (*at == '\\') at++;
        if ((unsigned char)*at < ' ') {
            scanner->at = at;
            return fail_at(scanner, at >= scanner->end ? "the file ends within a text"
                                                       : "a control character within a text");
        }
    }
    scanner->at = at + 1;
    return true;
}

static bool skip_scalar(struct scanner *scanner) {
    static const char *const words[] = {"null", "true", "false", NULL};
    if (*scanner->at == '"') return skip_text(scanner);
    for (const char *const *word = words; *word != NULL; word++) {
        if (strncmp(scanner->at, *word, strlen(*word)) != 0) continue;
        scanner->at += strlen(*word);
        return true;
    }
    const char *end = end_of_number(scanner->at);
    if (end == NULL) return fail_expected(scanner, "a value");
    scanner->at = end;
    return true;
}

static bool take_key(struct scanner *scanner, const char **name, size_t *length) {
    skip_space(scanner);
    if (*scanner->at != '"') return fail_expected(scanner, "a key");
    *name = scanner->at + 1;
    if (!skip_text(scanner)) return false;
    *length = (size_t)(scanner->at - 1 - *name);
    return take(scanner, ':', "a colon");
}

static bool skip_value(struct scanner *scanner, int depth) {
    const char *name;
    size_t length;
    skip_space(scanner);
    char open = *scanner->at;
    if (open != '[' && open != '{') return skip_scalar(scanner);
    if (depth > DEEPEST) return fail_at(scanner, "nested too deeply");
    char close = open == '[' ? ']' : '}';
    scanner->at++;
    skip_space(scanner);
    bool more = *scanner->at != close;
    if (!more) scanner->at++;
    while (more) {
        if (open == '{' && !take_key(scanner, &name, &length)) return false;
        if (!skip_value(scanner, depth + 1)) return false;
        if (!take_next(scanner, close, "a comma or an end", &more)) return false;
    }
    return true;
}

// ---- the object -------------------------------------------------------------------------------

static enum key find_key(const char *name, size_t length) {
    for (enum key key = 0; key < KEYS; key++) {
        if (strlen(key_names[key]) == length && memcmp(key_names[key], name, length) == 0) return key;
    }
    return KEYS;
}

static bool read_field(struct scanner *scanner) {
    const char *name;
    size_t length;
    if (!take_key(scanner, &name, &length)) return false;
    enum key key = find_key(name, length);
    if (key == KEYS) return skip_value(scanner, 0);
    if (scanner->seen[key]) {
        scanner->at = name - 1;
        return fail_at(scanner, "%s stands there twice", key_names[key]);
    }
    scanner->seen[key] = true;
    scanner->list = key_names[key];
    return key == EXPERT_LOADS ? read_expert_loads(scanner) : read_numbers(scanner, &scanner->lengths[key]);
}

static bool read_object(struct scanner *scanner) {
    bool more;
    if (!take(scanner, '{', "an object")) return false;
    skip_space(scanner);
    more = *scanner->at != '}';
    if (!more) scanner->at++;
    while (more) {
        if (!read_field(scanner)) return false;
        if (!take_next(scanner, '}', "a comma or the end of the object", &more)) return false;
    }
    skip_space(scanner);
    return scanner->at == scanner->end || fail_expected(scanner, "the end of the file");
}

static bool check_lists(const struct scanner *scanner) {
    for (enum key key = 0; key < KEYS; key++) {
        if (scanner->seen[key]) continue;
        return problem_set(scanner->problem,
                           "%s: has no %s; a gate log has step, num_tokens and expert_loads", scanner->path,
                           key_names[key]);
    }
    const size_t *lengths = scanner->lengths;
    if (lengths[STEP] == lengths[EXPERT_LOADS] && lengths[NUM_TOKENS] == lengths[EXPERT_LOADS]) return true;
    return problem_set(scanner->problem,
                       "%s: %zu values in step, %zu in num_tokens, %zu in expert_loads; lists of one length "
                       "would be right",
                       scanner->path, lengths[STEP], lengths[NUM_TOKENS], lengths[EXPERT_LOADS]);
}

// ---- the file ---------------------------------------------------------------------------------

static bool fail_reading(const char *path, int reason, struct problem *problem) {
    return problem_set(problem, "%s: cannot be read: %s", path, strerror(reason));
}

static bool read_all(int file, const char *path, struct gate_scratch *scratch, size_t *size,
                     struct problem *problem) {
    struct stat status;
    if (fstat(file, &status) != 0) return fail_reading(path, errno, problem);
    if (!S_ISREG(status.st_mode)) return problem_set(problem, "%s: is not a file", path);
    size_t wanted = (size_t)status.st_size, got = 0;
    if (wanted + PADDING > scratch->text_capacity) {
        char *grown = realloc(scratch->text, wanted + PADDING);
        if (grown == NULL) return fail_reading(path, ENOMEM, problem);
        scratch->text = grown;
        scratch->text_capacity = wanted + PADDING;
    }
    while (got < wanted) {
        ssize_t count = read(file, scratch->text + got, wanted - got);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail_reading(path, errno, problem);
        if (count == 0) break;
        got += (size_t)count;
    }
    memset(scratch->text + got, 0, PADDING);
    *size = got;
    return true;
}

bool gate_log_read(const char *path, struct gate_scratch *scratch, struct gate_log *log,
                   struct problem *problem) {
    // O_NONBLOCK: a FIFO is told from a file, not waited for.
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail_reading(path, errno, problem);
    size_t size = 0;
    bool is_read = read_all(file, path, scratch, &size, problem);
    close(file);
    if (!is_read) return false;
    struct scanner scanner = {.path = path, .scratch = scratch, .log = log, .problem = problem};
    scanner.begin = scanner.at = scratch->text;
    scanner.end = scratch->text + size;
    return read_object(&scanner) && check_lists(&scanner);
}

void gate_log_free(struct gate_log *log) {
    free(log->loads);
    free(log->imbalance);
    *log = (struct gate_log){0};
}

void gate_scratch_free(struct gate_scratch *scratch) {
    free(scratch->text);
    free(scratch->numbers);
    *scratch = (struct gate_scratch){0};
}
