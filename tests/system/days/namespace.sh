#!/bin/sh
# namespace.sh COMMAND...: runs it in a mount namespace of its own, so that its mounts end with it, or without
# one if that is not allowed. NAMESPACE=1 in its environment: it may mount.
if unshare --mount true 2>/dev/null; then
    NAMESPACE=1 exec unshare --mount "$@"
fi
exec "$@"
