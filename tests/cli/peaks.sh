#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ceilings of this machine as a table and as data.
. tests/lib/tap.sh

runs ridge peaks --quick --threads 1
prints '^fma f32 scalar +1 +[0-9.]+ +GFLOP/s'
prints '^copy_nt DRAM +1 '
runs ridge peaks --quick --json --threads 2 --isa scalar
holds 'all(.[]; (.value > 0 and .n > 10 and .min <= .value and .value <= .max) or .reason)'
holds '[.[] | select(.value != null) | .isa] | unique == ["scalar"]'
holds '[.[] | select(.name == "read L1") | .threads] == [1, 2]'
holds '([.[] | "\(.name) \(.threads)"] | unique | length) == length'
runs ridge peaks --quick --threads 1 --save --db "$tap_dir/new/peaks.db" --redact
complains 'saved in'
run sqlite3 "$tap_dir/new/peaks.db" "select count(*) > 20 from ceiling where value > 0 or reason != ''"
prints '^1$'
runs ridge peaks --quick --threads 1 --only 'copy L' --json
holds '[.[].name] | unique == ["copy L1", "copy L2", "copy L3"]'
refuses 'no ceiling.s name contains "nothing"' ridge peaks --quick --threads 1 --only nothing
run ridge peaks --only DRAM --save
exits 2
refuses 'scalar, avx2 or avx512' ridge peaks --isa no_such_set
run ridge peaks word
exits 2
finish
