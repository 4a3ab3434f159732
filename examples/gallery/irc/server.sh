#!/usr/bin/env bash
# ngIRCd on 127.0.0.1:$PORT, with the password `letmein`.
. "$(dirname "$0")/../../program.sh"
need ngircd ngircd
USER_NAME=$(id -un) GROUP_NAME=$(id -gn)
fill ngircd.conf
announce "tcp://127.0.0.1:$PORT"
exec ngircd --nodaemon --config "$FOLDER/ngircd.conf" >"$FOLDER/log"
