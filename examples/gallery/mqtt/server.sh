#!/usr/bin/env bash
# mosquitto with MQTT over WebSocket on 127.0.0.1:$PORT, for the sensors of sensors.csv with their passwords.
. "$(dirname "$0")/../../program.sh"
need mosquitto mosquitto
USER_NAME=$(id -un)
tail -n +2 sensors.csv | tr , : >"$FOLDER/passwords"
mosquitto_passwd -U "$FOLDER/passwords"
cp topics.acl "$FOLDER"
fill mosquitto.conf
announce "ws://127.0.0.1:$PORT"
exec mosquitto -c "$FOLDER/mosquitto.conf"
