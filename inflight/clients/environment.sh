# Sourced by the scripts beside it, and by those of examples/foreign: where everything that is fetched and built goes. They set fetched_into.
target=${fetched_into:-$(cd ../.. && pwd)/target/clients}
mkdir -p "$target"
export GOMODCACHE=$target/go/mod GOCACHE=$target/go/cache GOFLAGS="${GOFLAGS:-} -modcacherw" GOTOOLCHAIN=local
export PYTHONPYCACHEPREFIX=$target/python/pycache PYTHONPATH=$PWD/python

maven() { mvn --quiet --batch-mode -Dstyle.color=never -Dmaven.repo.local="$target/m2" -f java/pom.xml "$@"; }
