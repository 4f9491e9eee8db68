#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 20,000 damaged models against import, graph, explain, infer and verify, each under 8 GB of address space and 20 s:
# ONNX's own test models and exported workloads (8 % of the copies) with one thing said that must not be said
# (attributes, sizes, names, types, nests: tests/lib/damage_model.h), with fields of others, flipped bits, or cut off.
# RIDGE_DAMAGED (20000): how many; RIDGE_SEED (1). 9 ms of CPU time each. A tenth of it under ASan:
# make CONFIG=asan binary test-programs, then RIDGE_BUILD=build/asan RIDGE_DAMAGED=2000.
. tests/lib/tap.sh
program=${RIDGE_BUILD:-build/release}/tests/damage/run
data=/usr/share/libonnx-testdata/data
mkdir -p "$tap_dir/models"
number=0
for spec in gemm:m=16,n=16,k=16 gcn rnn wide_deep conv:case=57 pool:case=23 norm:case=50 active:case=90 fc:case=9 \
    synnet:footprint=1; do
    number=$((number + 1))
    "$RIDGE" export "$spec" -b 1 -o "$tap_dir/models/$number.onnx" >/dev/null 2>&1
done
check "$number workloads are exported" test "$(find "$tap_dir/models" -name '*.onnx' | wc -l)" = $number
find "$data" -name '*.onnx' -size -8192k 2>/dev/null | sort >"$tap_dir/list"
for share in 1 2 3 4 5 6 7 8 9 10; do
    : $share
    find "$tap_dir/models" -name '*.onnx' | sort >>"$tap_dir/list"
done
# shellcheck disable=SC2046 # paths without blanks
"$program" models "${RIDGE_DAMAGED:-20000}" "${RIDGE_SEED:-1}" $(cat "$tap_dir/list") >"$tap_dir/log"
code=$?
grep -E '^(# .* (exit codes|wrong)|not ok)' "$tap_dir/log" | sed 's/^not ok/# not ok/'
[ $code = 0 ]
tap_result $? "$(tail -1 "$tap_dir/log")"
finish
