#!/usr/bin/env bash
# Runs a command in a control group that gives it 20 % of a core (20 ms of each 100 ms), and removes the group afterwards:
#   examples/causes/throttled.sh python3 examples/causes/python/server.py --port 8080 --cause cpu-bound
# Exits with 3 where control groups may not be made, which takes root, or a group that was delegated.
set -uo pipefail
[ $# -gt 0 ] || { echo "usage: throttled.sh COMMAND…" >&2; exit 2; }

refuse() { echo "throttled.sh: not permitted here: $1" >&2; exit 3; }
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || refuse "the cpu controller is not on for groups below /sys/fs/cgroup"
    group=/sys/fs/cgroup/causes-$$
    mkdir "$group" 2>/dev/null || refuse "cannot make $group"
    trap 'rmdir "$group"' EXIT
    echo "20000 100000" 2>/dev/null >"$group/cpu.max" || refuse "cannot set cpu.max"
elif [ -d /sys/fs/cgroup/cpu ]; then
    group=/sys/fs/cgroup/cpu/causes-$$
    mkdir "$group" 2>/dev/null || refuse "cannot make $group"
    trap 'rmdir "$group"' EXIT
    { echo 100000 >"$group/cpu.cfs_period_us" && echo 20000 >"$group/cpu.cfs_quota_us"; } 2>/dev/null || refuse "cannot set the quota"
else
    refuse "there is no cpu controller below /sys/fs/cgroup"
fi

# The command enters the group before it is there; this shell stays outside, to wait and to remove the group.
bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" &
child=$!
trap 'kill "$child" 2>/dev/null' TERM INT
wait "$child"
status=$?
while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
done
# Whoever it started may take a moment to be gone.
for _ in $(seq 20); do
    [ -n "$(cat "$group/cgroup.procs")" ] || break
    sleep 0.1
done
exit "$status"
