#!/usr/bin/env bash
# Redis on 127.0.0.1:$PORT, with the password `letmein`, in memory only.
. "$(dirname "$0")/../../program.sh"
need redis-server redis-server
fill redis.conf
announce "tcp://127.0.0.1:$PORT"
exec redis-server "$FOLDER/redis.conf"
