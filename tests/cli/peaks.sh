#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ceilings of this machine as a table and as data.
. tests/lib/tap.sh

run ridge peaks --quick --threads 1
exits 0
prints '^fma f32 scalar +1 +[0-9.]+ +GFLOP/s'
prints '^copy_nt DRAM +1 '
run ridge peaks --quick --json --threads 2 --isa scalar
exits 0
holds 'all(.[]; (.value > 0 and .n > 10 and .min <= .value and .value <= .max) or .reason)'
holds '[.[] | select(.value != null) | .isa] | unique == ["scalar"]'
holds '[.[] | select(.name == "read L1") | .threads] == [1, 2]'
holds '([.[] | "\(.name) \(.threads)"] | unique | length) == length'
run ridge peaks --quick --threads 1 --save --db "$tap_dir/new/peaks.db" --redact
exits 0
complains 'saved in'
run sqlite3 "$tap_dir/new/peaks.db" "select count(*) > 20 from ceiling where value > 0 or reason != ''"
prints '^1$'
run ridge peaks --isa no_such_set
exits 2
complains 'scalar, avx2 or avx512'
run ridge peaks word
exits 2
finish
