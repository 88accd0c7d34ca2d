// The processes of a session, from /proc. Each child of gentables leads a session, which has all processes
// that the child starts.
#ifndef GENTABLES_PROCESS_SESSION_H
#define GENTABLES_PROCESS_SESSION_H

#include <stddef.h>
#include <sys/types.h>

// Kills all processes of the session, whatever their process groups, and waits until they have ended, for at
// most a second. Removes the segments of Open MPI's shared-memory transport that they had mapped.
void session_kill(pid_t session);

// Lists the stopped processes in `text`, by rank if their launcher gave them one: `rank 1 is stopped`. If
// none is stopped, `text` is "".
void session_stopped(pid_t session, char text[], size_t size);

#endif
