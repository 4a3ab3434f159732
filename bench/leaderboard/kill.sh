#!/usr/bin/env bash
# Kills the leaderboard service in mid-write with SIGKILL, and checks after each restart that every acknowledged increment
# is there and none that was never sent. bench/leaderboard/kill.sh [KILLS]: 1,000 unless said otherwise, some 30 s once it is built.
# A build for tests: the service's own assertions hold as well.
set -euo pipefail
cd "$(dirname "$0")/../.."
export STEPLADDER_KILLS=${1:-1000}
cargo test -p stepladder-servers --test it --no-run
timeout $((60 + STEPLADDER_KILLS)) cargo test -p stepladder-servers --test it leaderboard_kill -- --nocapture
