#!/usr/bin/env bash
# mosquitto with MQTT over WebSocket on 127.0.0.1:$PORT, for the user `bot` with the password `letmein`.
. "$(dirname "$0")/../../program.sh"
need mosquitto mosquitto
USER_NAME=$(id -un)
mosquitto_passwd -c -b "$FOLDER/passwords" bot letmein
fill mosquitto.conf
announce "ws://127.0.0.1:$PORT"
exec mosquitto -c "$FOLDER/mosquitto.conf"
