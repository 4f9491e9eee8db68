#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The doctor tells what is there, what is not, and why.
. tests/lib/tap.sh

runs ridge doctor
prints '^machine'
prints 'CPUs usable'
prints 'All that is required is there'

runs ridge doctor --json
holds '.machine.cpus_online >= 1 and .machine.memory_bytes > 0 and .machine.isa'
holds '.build.version and .build.commit and .build.compiler'
holds 'all(.plugins[]; (.loaded and .version) or (.reason | length > 10))'
holds '.missing == []'
holds '.profilers | length >= 5 and all(.[]; .available or (.reason | length > 20))'

# What is free is what a process may have: a control group may limit that, or ulimit.
case $RIDGE in
*asan* | *tsan*) ;; # a sanitizer reserves terabytes of address space
*)
    runs sh -c 'ulimit -v 3000000; exec "$0" doctor' "$RIDGE"
    prints '^  of that free +[0-2]\.[0-9] GiB of the address space that `ulimit -v` grants$'
    runs sh -c 'ulimit -v 3000000; exec "$0" doctor --json' "$RIDGE"
    holds '.machine.memory_available_bytes | . > 0 and . < 3072000000'
    holds '.machine.memory_available_where | contains("ulimit -v")'
    ;;
esac

# Every fact with where it was read; redacted ones hash the same and hold no name.
runs ridge doctor --facts
prints '^kernel +release'
runs ridge doctor --facts --json
holds '.facts | length > 60 and all(.[]; .category and .key and .source and .class and .status)'
holds '[.facts[] | select(.status == "ok" and .value == null)] == []'
holds '.hash | test("^[0-9a-f]{16}$")'
open=$(jq -r '.hash + .host_uid' "$output")
runs ridge doctor --facts --json --redact
holds "(.hash + .host_uid) == \"$open\""
holds '.host_label | startswith("host-")'
holds '.facts[] | select(.key == "hostname") | .value == "redacted"'

runs ridge doctor --require scalar

run ridge doctor --require scalar,no_such_library --json
exits 5
holds '.missing | length == 1 and (.[0] | contains("no_such_library"))'

RIDGE_ISA=scalar
export RIDGE_ISA
run ridge doctor --json
holds '.machine.isa == "scalar"'
run ridge doctor --require avx2
exits 5
RIDGE_ISA=avx-2
run ridge doctor
exits 2
complains 'RIDGE_ISA is "avx-2": say scalar, avx2 or avx512'
unset RIDGE_ISA

# A plug-in that is no plug-in is refused with a reason, and nothing else suffers.
mkdir "$tap_dir/plugins"
echo "not an object" >"$tap_dir/plugins/broken.so"
RIDGE_PLUGIN_PATH=$tap_dir/plugins:${RIDGE_PLUGIN_PATH:-}
export RIDGE_PLUGIN_PATH
runs ridge doctor --json
holds '.plugins[] | select(.name == "broken") | .loaded == false and (.reason | length > 0)'

# Where the tuner cannot write, the doctor says so.
RIDGE_CACHE=/dev/null/cache.txt
export RIDGE_CACHE
runs ridge doctor --json
holds '.tuner_cache == "/dev/null/cache.txt"'
holds '.advice | any(contains("RIDGE_CACHE"))'

finish
