#!/bin/sh
# gentables regret of headers with code that runs before their lookup is called: the code cannot change
# anything outside, and the lookup's answers count. --unconfined runs it with all rights, and is required
# where a process cannot be confined.
. "$(dirname "$0")/../../lib.sh"
needs cc c++

rows=$golden/benchmark.tp2.sm90.csv
regret() { # CODE TABLE OPTION...
    code_wanted=$1 of=$2
    shift 2
    ends_with "$code_wanted" "$GENTABLES" regret --table "$of" --rows "$rows" "$@"
}

# Tries all that a program could do to others; ends with the number of what it was able to do.
cat >"$WORK/acts.h" <<CODE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int made_of(const char *command) { return command != NULL && system(command) == 0; }

__attribute__((constructor)) static void act(void) {
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    if (open("$WORK/made", O_WRONLY | O_CREAT, 0600) >= 0) _exit(40);
    if (open("$WORK/kept", O_RDWR) >= 0) _exit(41);
    if (open("$WORK/kept", O_RDONLY | O_TRUNC) >= 0) _exit(42);
    if (unlink("$WORK/kept") == 0 || rename("$WORK/kept", "$WORK/made") == 0) _exit(43);
    if (mkdir("$WORK/made", 0700) == 0 || symlink("$WORK/kept", "$WORK/made") == 0) _exit(44);
    if (chmod("$WORK/kept", 0) == 0 || truncate("$WORK/kept", 0) == 0) _exit(45);
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0) _exit(46);
    if (kill(getppid(), 0) == 0) _exit(47);
    if (fork() >= 0 || made_of("touch $WORK/made")) _exit(48);
    if (mmap(NULL, (size_t)2 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) _exit(49);
    if (setrlimit(RLIMIT_AS, &most) == 0) _exit(50);
}
CODE
echo text >"$WORK/kept"
unchanged() { # TABLE
    if [ "$(cat "$WORK/kept")" != text ] || [ -e "$WORK/made" ]; then die "$1 changed files"; fi
}
for name in allreduce_table.h generated_lookup_table.cpp; do
    cat "$WORK/acts.h" "$golden/$name" >"$WORK/$name"
    regret 0 "$WORK/$name"
    has ': [0-9]+ shapes looked up' "$stdout"
    unchanged "$name"
done
regret 0 "$WORK/allreduce_table.h" --json
sed "s|$WORK|$golden|" "$stdout" >"$WORK/answers"
regret 0 "$golden/allreduce_table.h" --json
cmp "$WORK/answers" "$stdout" || die "the code changes the answers"
regret 2 "$WORK/allreduce_table.h" --unconfined
one_line 'allreduce_table.h: its lookup did not answer \(exit code 40'
[ -e "$WORK/made" ] || die "--unconfined confines"

# The compiler has a limit on memory and on the size of its files: a header cannot use up the machine. (The
# file has no blocks, but the compiler allocates memory for its size.)
truncate -s 3G "$WORK/large"
for line in '#include "large"' 'static char wide[1 << 30] __attribute__((used)) = {1};'; do
    { echo "$line"; cat "$golden/allreduce_table.h"; } >"$WORK/allreduce_table.h"
    regret 2 "$WORK/allreduce_table.h"
    one_line 'allreduce_table.h: does not compile with'
done
cat "$WORK/acts.h" "$golden/allreduce_table.h" >"$WORK/allreduce_table.h"

# A filter under which there are no further filters.
cat >"$WORK/without.c" <<'CODE'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 90;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) return 91;
    execv(argv[1], argv + 1);
    return 92;
}
CODE
cc -o "$WORK/without" "$WORK/without.c"
rm "$WORK/made"
ends_with 2 "$WORK/without" "$GENTABLES" regret --table "$WORK/allreduce_table.h" --rows "$rows"
one_line 'allreduce_table.h: its lookup is code, and this system cannot confine it.*; --unconfined runs it'
unchanged allreduce_table.h
ends_with 0 "$WORK/without" "$GENTABLES" regret --table "$golden/allreduce_table.h" --rows "$rows" \
    --unconfined
