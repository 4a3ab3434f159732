#!/bin/sh
# Starts an agent on each host until this script ends:  examples/agents/ssh.sh nats://10.0.0.1:4222 host1 host2 …
# The program must be on PATH there, of the same version as here. A password belongs into the environment of the remote account.
set -eu
nats=$1
shift
trap 'kill $(jobs -p) 2>/dev/null' EXIT INT TERM
for host in "$@"; do
    # -tt: the agent ends with the connection.
    ssh -tt "$host" stepladder agent --nats "$nats" --name "$host" </dev/null &
done
wait
