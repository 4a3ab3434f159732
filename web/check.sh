#!/usr/bin/env bash
# The page's part of ../check, cheap to dear; stops at the first failure. The packages are installed by then.
#   web/check.sh          all of it; wants the program built, or named with STEPLADDER=
#   web/check.sh --quick  without a browser
#   web/check.sh --real   only the browser over the real program and beside hostile servers, and
#   web/check.sh --rest   all but that: ../check runs these two side by side
# Without Chromium everything else still runs, and the last words say which tests did not.
set -euo pipefail
cd "$(dirname "$0")"
part=${1:-}

say() { printf '\n== %s\n' "$*"; }

without_browser() {
    say "the page: types"
    # `any` would let the page read what the program does not send; the types in src/data.ts are generated from the program's.
    if grep -rnE ':\s*any\b|<[^>]*\bany\b[^>]*>|as any|any\[\]' src --include=*.ts; then
        echo "web/check.sh: the lines above use the type any; name the type, or use unknown" >&2
        exit 1
    fi
    # What a page shows comes some time after what led to it: an assertion that looks once passes or fails by chance.
    if grep -nE '^ *assert\.[a-zA-Z]+\(await (page|heading|seconds|rows|blocks|ground|tickRows)\b' e2e/run.mjs e2e/real.mjs; then
        echo "web/check.sh: the lines above look at the page once; put them into \`await eventually(async () => …)\`" >&2
        exit 1
    fi
    npm run --silent types
    say "the page: unit tests"
    npm run --silent test
    say "the page: build"
    npm run --silent build
}

[ "$part" = "--real" ] || without_browser
[ "$part" = "--quick" ] && exit 0

# The two parts may look for it at the same time; one installs it.
exec 9<e2e/browser.mjs
flock 9
if ! chromium=$(node e2e/browser.mjs) && [ -z "${CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing chromium with apt-get, for the tests in a browser"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || true
    chromium=$(node e2e/browser.mjs) || true
fi
exec 9<&-
if [ -z "$chromium" ]; then
    cat >&2 <<'WORDS'

!! NOT RUN: the tests in a browser (web: npm run e2e, e2e:real, e2e:hostile). Everything else passed.
!! There is no Chromium that starts. Install one (Debian: apt-get install chromium) or name one with
!! CHROMIUM=/path/to/chromium, and run ./check again, or web/check.sh alone.
WORDS
    exit 0
fi

if [ "$part" != "--real" ]; then
    say "the page in $chromium, over planted runs"
    npm run --silent e2e
fi
[ "$part" = "--rest" ] && exit 0
say "the page in $chromium, over the real program"
npm run --silent e2e:real
say "the page in $chromium, beside hostile servers and clients"
npm run --silent e2e:hostile
