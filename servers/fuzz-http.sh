#!/usr/bin/env bash
# Fuzzes the leaderboard's HTTP interface from the document that it serves itself (/openapi.json), with schemathesis.
#   servers/fuzz-http.sh [PROGRAM]   PROGRAM: target/release/stepladder; takes less than a minute
# schemathesis is installed from PyPI into target/schemathesis. Where that cannot be done, the last words say so.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-target/release/stepladder}
version=4.32.5
home=$PWD/target/schemathesis

not_run() {
    printf '\n!! NOT RUN: the fuzzing of the HTTP interface (servers/fuzz-http.sh); %s. Everything before it passed.\n' "$1" >&2
    exit 0
}

if [ "$("$home/bin/schemathesis" --version 2>/dev/null)" != "schemathesis, version $version" ]; then
    command -v python3 >/dev/null || not_run "there is no python3 (Debian: apt-get install python3-venv)"
    printf 'installing schemathesis %s into %s\n' "$version" "$home"
    python3 -m venv "$home" || not_run "python3 cannot make a virtual environment (Debian: apt-get install python3-venv)"
    timeout 120 "$home/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" ||
        not_run "pip could not install schemathesis $version within two minutes"
fi

folder=$(mktemp -d)
"$program" serve leaderboard --listen 127.0.0.1:0 --data "$folder/data" >"$folder/out" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 100); do
    url=$(sed -n 's/^leaderboard listening on //p' "$folder/out")
    [ -n "$url" ] && break
    sleep 0.1
done
[ -n "$url" ] || { echo "fuzz-http.sh: $program serve leaderboard does not listen" >&2; exit 1; }

# What no schema can say (a limit in bytes, an end that lies in the future) is refused with 422.
cat >"$folder/schemathesis.toml" <<'TOML'
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429, "5xx"]
TOML
# Whether unsigned requests are taken (ignored_auth) depends on --keys, which this service runs without.
found=0
(cd "$folder" && timeout 60 "$home/bin/schemathesis" run "$url/openapi.json" --max-examples 10 --max-time 25 --seed 1 --workers 1 \
    --checks all --exclude-checks ignored_auth,object_level_authorization) || found=$?
kill -0 "$server" || { echo "fuzz-http.sh: the service has ended" >&2; exit 1; }
exit "$found"
