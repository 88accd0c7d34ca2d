// Checks of machine code; see sass.h. NVIDIA does not document instructions: the rules are those of what nvcc
// 12.4 and 13.0 compiled for sm_80 to sm_120. Later GPUs may have others, so their code is not checked.
#include "sass.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_SM = 80, LAST_SM = 120, COMMAND_SIZE = 320, KERNEL_SIZE = 96, NOT_FOUND = 127 };

// An instruction that kernels need. An instruction is found by two parts of its line.
struct rule {
    const char *part, *other_part;
    const char *purpose;
    const char *only, *except; // parts of kernels' names; NULL: no condition
    int from_sm;
};

static const struct rule rules[] = {
    {"STRONG.SYS", "", "accesses that other GPUs see", NULL, NULL, 80},
    {"MEMBAR.", ".SYS", "a fence before flags", NULL, "gentables_oneshot_",
     80}, // messages are their own flags
    {"ACQBULK", "", "the wait for the launch ahead", NULL, NULL, 90},
    {"PREEXIT", "", "the start of the next launch", "shot_", NULL, 90},
    {"LDGMC.", "", "sums in the switch", "_nvls_", NULL, 90},
};
enum { RULES = sizeof rules / sizeof *rules };

// A kernel of the list, and which instructions it has.
struct listing {
    int sm, kernels;
    char name[KERNEL_SIZE]; // "": before the first kernel
    bool has[RULES];
    char *reason; // of the first wrong kernel; "": none
    size_t reason_size;
};

static bool applies(const struct rule *rule, const struct listing *listing) {
    return listing->sm >= rule->from_sm &&
           (rule->only == NULL || strstr(listing->name, rule->only) != NULL) &&
           (rule->except == NULL || strstr(listing->name, rule->except) == NULL);
}

// Judges the kernel that ends here.
static void end_kernel(struct listing *listing) {
    if (listing->name[0] == '\0') return;
    listing->kernels++;
    for (int i = 0; i < RULES && listing->reason[0] == '\0'; i++) {
        if (listing->has[i] || !applies(&rules[i], listing)) continue;
        snprintf(listing->reason, listing->reason_size, "the machine code of %s lacks %s (%s)", listing->name,
                 rules[i].purpose, rules[i].part);
    }
}

static void read_line(struct listing *listing, const char *line) {
    static const char begin[] = "Function : ";
    const char *name = strstr(line, begin);
    if (name == NULL) {
        for (int i = 0; i < RULES; i++) {
            if (strstr(line, rules[i].part) != NULL && strstr(line, rules[i].other_part) != NULL)
                listing->has[i] = true;
        }
        return;
    }
    end_kernel(listing);
    memset(listing->has, 0, sizeof listing->has);
    name += sizeof begin - 1;
    snprintf(listing->name, sizeof listing->name, "%.*s", (int)strcspn(name, " \r\n"), name);
}

// Returns the exit code of cuobjdump; -1: it was not started, or died.
static int read_listing(struct listing *listing, int file) {
    char command[COMMAND_SIZE], *line = NULL;
    size_t room = 0;
    snprintf(command, sizeof command,
             "PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin; command -v cuobjdump >/dev/null || exit %d; "
             "exec cuobjdump -sass -arch sm_%d /proc/%d/fd/%d 2>/dev/null",
             NOT_FOUND, listing->sm, (int)getpid(), file);
    FILE *from = popen(command, "r");
    if (from == NULL) return -1;
    while (getline(&line, &room, from) > 0) read_line(listing, line);
    end_kernel(listing);
    free(line);
    int status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// An image is a header and as many bytes as that says, or, if nothing was compiled, a text.
static size_t image_bytes(const char *image) {
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } header;
    if (strlen(image) >= sizeof header) return strlen(image); // a header has bytes of 0
    memcpy(&header, image, sizeof header);
    return header.header_bytes + header.bytes;
}

// A file without a name that has the image; -1: it cannot be made.
static int make_file(const void *image) {
    size_t bytes = image_bytes(image);
    int file = memfd_create("kernels", MFD_CLOEXEC);
    if (file >= 0 && write(file, image, bytes) == (ssize_t)bytes) return file;
    if (file >= 0) close(file);
    return -1;
}

enum sass_end sass_check(const void *image, int sm, int *kernels, char reason[], size_t reason_size) {
    struct listing listing = {.sm = sm, .reason = reason, .reason_size = reason_size};
    reason[0] = '\0';
    if (sm < FIRST_SM || sm > LAST_SM) {
        snprintf(reason, reason_size, "those of sm_%d are not known", sm);
        return SASS_NOT_CHECKED;
    }
    int file = make_file(image);
    int status = file < 0 ? -1 : read_listing(&listing, file);
    if (file >= 0) close(file);
    *kernels = listing.kernels;
    if (status == 0 && listing.kernels > 0) return reason[0] == '\0' ? SASS_RIGHT : SASS_WRONG;
    snprintf(reason, reason_size, "%s",
             status == NOT_FOUND ? "no cuobjdump in PATH or CUDA_HOME" : "cuobjdump cannot read them");
    return SASS_NOT_CHECKED;
}
