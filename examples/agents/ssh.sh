#!/bin/sh
# Starts an agent on each host until this script ends:  examples/agents/ssh.sh nats://10.0.0.1:4222 host1 host2 …
# The program must be on PATH there, of the same version as here. A password is written as ${NAME} ('nats://${NATS_TOKEN}@…') and set in
# the environment of the remote account.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 NATS_URL HOST…" >&2
    exit 2
fi
nats=$1
shift
agents=
# shellcheck disable=SC2086 # several process ids
trap 'kill $agents 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP
for host in "$@"; do
    # -tt: the agent ends with the connection. The quotes are for the remote shell: the program fills in ${NAME} itself.
    ssh -tt "$host" "exec stepladder agent --nats '$nats' --name '$host'" </dev/null &
    agents="$agents $!"
done
wait
