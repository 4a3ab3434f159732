#!/usr/bin/env bash
# A NATS server on 127.0.0.1:$PORT, with the token `letmein`.
. "$(dirname "$0")/../../program.sh"
need nats-server nats-server
fill nats.conf
announce "tcp://127.0.0.1:$PORT"
exec nats-server -c "$FOLDER/nats.conf"
