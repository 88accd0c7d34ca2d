// The processes of a session, as /proc tells: a child of gentables leads one, and all that it starts is in
// it.
#ifndef GENTABLES_SESSION_H
#define GENTABLES_SESSION_H

#include <stddef.h>
#include <sys/types.h>

// Kills all of them, and waits until they have ended: groups of their own do not hide them, nor do they start
// others meanwhile. The segments of Open MPI that they had mapped go, too.
void session_kill(pid_t session);

// Writes which of them are stopped, such as `rank 1 is stopped`, by the numbers that launchers give to ranks.
// "" where none is.
void session_stopped(pid_t session, char text[], size_t size);

#endif
