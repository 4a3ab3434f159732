# Sourced by the scripts beside it: as inflight/clients/environment.sh, below target/foreign.
fetched_into=$(cd ../.. && pwd)/target/foreign
. ../../inflight/clients/environment.sh

has() { command -v "$1" >/dev/null; }
# Whether a language was set up.
ready() {
    case $1 in
    node) [ -e "$target/node/node_modules/.package-lock.json" ] ;;
    python) [ -e "$target/python/installed" ] ;;
    go) [ -x "$target/go/bin/grpc" ] ;;
    java) [ -e "$target/java/foreign.jar" ] ;;
    nginx) has nginx ;;
    esac
}
