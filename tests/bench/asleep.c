// Preloaded: SIGUSR2 puts the thread that gets it, the main one, to sleep for good, wherever it is.
#include <signal.h>
#include <unistd.h>

static void sleep_for_good(int signal) {
    (void)signal;
    for (;;) pause();
}

__attribute__((constructor)) static void prepare(void) {
    struct sigaction action = {.sa_handler = sleep_for_good};
    sigaction(SIGUSR2, &action, NULL);
}
