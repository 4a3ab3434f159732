#!/usr/bin/env bash
# Kills the leaderboard service in mid-write with SIGKILL, and checks after each restart that every acknowledged increment
# is there and none that was never sent. bench/leaderboard/kill.sh [KILLS]; 1,000 take a few minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
STEPLADDER_KILLS=${1:-1000} timeout 1800 cargo test --release -p servers --test it leaderboard_kill -- --nocapture
