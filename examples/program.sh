# Sourced by each server.sh, which starts a program as the server: $PORT, a temporary folder for its configuration, and `listening on URL` when it is up.
# The program replaces the shell (exec), so that SIGTERM to its process id ends the program itself.
set -euo pipefail
cd "$(dirname "$0")"
export PORT=${PORT:-8080} PATH=$PATH:/usr/sbin

# need PROGRAM PACKAGE: refuses to start without the program.
need() { command -v "$1" >/dev/null || { echo "$0: no $1 found (Debian: apt-get install $2)" >&2; exit 1; }; }

# fill FILE: the configuration with the values of its variables, into $FOLDER. Only names in capitals are variables.
fill() {
    local text name
    text=$(<"$1")
    for name in $(grep -o '\$[A-Z_]\+' "$1" | tr -d '$' | sort -u); do text=${text//"\$$name"/${!name}}; done
    printf '%s\n' "$text" >"$FOLDER/$1"
}

# announce URL: prints it once the port accepts, and removes $FOLDER when the program has ended. A process beside the program does both,
# because exec leaves no shell to do it.
announce() {
    (
        while kill -0 $$ 2>/dev/null && ! (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do sleep 0.05; done
        ! kill -0 $$ 2>/dev/null || echo "listening on $1"
        exec >/dev/null 2>&1
        while kill -0 $$ 2>/dev/null; do sleep 0.5; done
        rm -rf "$FOLDER"
    ) </dev/null &
}

FOLDER=$(mktemp -d)
