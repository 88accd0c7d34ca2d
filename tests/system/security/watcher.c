// Another user who watches a folder in which everybody makes temporary files, and tries to get hold of them:
// makes folders with the names of files that vanish, and replaces, reads and fills what others make.
//
//   watcher USER LOG      run as root in that folder; acts with the rights of USER, a number, until it is
//                         killed. Lines of LOG: "took NAME" for each success; "seen NAME" when all was tried
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NAMES = 4096, TRIES = 2000 };

static FILE *record;

static void took(const char *name, const char *how) {
    fprintf(record, "took %s: %s\n", name, how);
    fflush(record);
}

// Makes a folder with the name of a file that is or will be removed.
static void plant(const char *name) {
    for (int i = 0; i < TRIES; i++) {
        if (mkdir(name, 0777) == 0) {
            chmod(name, 0777);
            return;
        }
    }
}

static void attack(const char *name) {
    char inside[NAME_MAX + 16];
    struct stat status;
    snprintf(inside, sizeof inside, "%s/lookup", name);
    if (stat(name, &status) != 0 || status.st_uid == getuid()) return;
    if (open(inside, O_WRONLY | O_CREAT, 0777) >= 0) took(name, "wrote a file in the folder");
    if (opendir(name) != NULL) took(name, "listed the folder");
    if (open(name, O_WRONLY) >= 0) took(name, "wrote the file");
    if (rename(name, "taken") == 0 || unlink(name) == 0) took(name, "moved it away");
    if (S_ISREG(status.st_mode)) plant(name);
}

// A planted folder in which others made something.
static void look_into(const char *name) {
    struct stat status;
    DIR *folder = stat(name, &status) == 0 && status.st_uid == getuid() ? opendir(name) : NULL;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.') took(name, "others use the planted folder");
    }
    if (folder != NULL) closedir(folder);
}

int main(int argc, char **argv) {
    static char names[MOST_NAMES][NAME_MAX + 1];
    int count = 0;
    _Alignas(struct inotify_event) char events[64 * 1024];
    if (argc != 3 || (record = fopen(argv[2], "w")) == NULL) return 2;
    gid_t group = (gid_t)strtoul(argv[1], NULL, 10);
    if (setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(group) != 0) return 3;
    int watch = inotify_init1(IN_CLOEXEC);
    if (watch < 0 || inotify_add_watch(watch, ".", IN_CREATE | IN_MOVED_TO | IN_DELETE) < 0) return 4;
    fprintf(record, "seen all from now on\n");
    fflush(record);
    for (ssize_t got; (got = read(watch, events, sizeof events)) > 0;) {
        for (char *at = events; at < events + got;) {
            struct inotify_event *event = (struct inotify_event *)at;
            at += sizeof *event + event->len;
            if (event->mask == IN_DELETE) plant(event->name); // of a file
            if ((event->mask & IN_DELETE) != 0) continue;
            attack(event->name);
            fprintf(record, "seen %s\n", event->name);
            if (count < MOST_NAMES) snprintf(names[count++], sizeof names[0], "%s", event->name);
        }
        for (int i = 0; i < count; i++) look_into(names[i]);
        fflush(record);
    }
    return 1;
}
