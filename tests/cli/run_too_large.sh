#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What does not fit into memory is not begun: a model with a tensor of 2^31 elements, and, in a
# control group of 1.5 GB (or under `ulimit -v`, where none can be made), the large one of a suite.
. tests/lib/tap.sh
case $RIDGE in
*asan* | *tsan*)
    echo "skipped: a sanitizer reserves terabytes of address space"
    exit 77
    ;;
esac

# y = Relu(x), x: f32[2147483648]
big=$tap_dir/big.onnx
printf '\010\010\072\100\012\017\012\001\170\022\001\171\032\001\162\042\004\122\145\154\165\022\003\142\151\147\132\023\012\001\170\022\016\012\014\010\001\022\010\012\006\010\200\200\200\200\010\142\023\012\001\171\022\016\012\014\010\001\022\010\012\006\010\200\200\200\200\010\102\004\012\000\020\021' >"$big"
run ridge graph "$big" --json
holds '.inputs[0].shape == [2147483648] and .memory_run_bytes > 17e9'
run sh -c 'ulimit -v 8000000; exec "$@"' sh "$RIDGE" infer "$big"
exits 5
complains 'needs [0-9.]+ GB of memory, [0-9.]+ GB are free of the address space'
prints_nothing
for what in explain verify "run --on-request"; do
    # shellcheck disable=SC2086 # words
    run sh -c 'ulimit -v 8000000; exec "$@"' sh "$RIDGE" $what "$big"
    exits 5
    complains 'needs [0-9.]+ GB of memory'
done

# The shell that calls `run` enters the group; it is removed when the test ends.
group=""
for top in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -n "$group" ] && continue
    try=$top/ridge-test-$$
    mkdir "$try" 2>/dev/null || continue
    { echo 1500000000 >"$try/memory.limit_in_bytes" || echo 1500000000 >"$try/memory.max"; } 2>/dev/null &&
        sh -c "echo \$\$ >'$try/cgroup.procs'" 2>/dev/null && group=$try
    [ -n "$group" ] || rmdir "$try"
done
if [ -n "$group" ]; then
    echo "# in $group"
    trap 'rmdir "$group"; rm -rf "$tap_dir"' EXIT
    narrow() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
    where='in this control group of 1.5 GB'
else
    echo "# no control group can be made: ulimit -v"
    narrow() { sh -c 'ulimit -v 1500000; exec "$@"' sh "$@"; }
    where='of the address space'
fi

db=$tap_dir/ridge.db
cat >"$tap_dir/suite.toml" <<'SUITE'
name = "large and small"
[[workload]]
name = "bert_large"
batch = 1
[[workload]]
name = "gemm"
m = 64
n = 64
k = 64
batch = 1
SUITE
run narrow "$RIDGE" run "$tap_dir/suite.toml" --db "$db" --no-ceilings --no-report --no-layers \
    --profilers model --samples 3 --seconds 0 --seconds-max 1
[ "$code" = 0 ] || [ "$code" = 4 ] # too few samples for a busy machine
tap_result $? "the small one is measured: exit code $code"
prints "bert_large .*skipped: (verifying )?needs [0-9.]+ GB of memory, [0-9.]+ GB are free $where"
check "both are stored, the large one as skipped" test \
    "$(sqlite3 "$db" "SELECT group_concat(workload || ' ' || status, ', ') FROM (SELECT p.workload, iif(r.status = 'skipped', r.status, 'run') AS status
    FROM result AS r JOIN point AS p ON p.id = r.point ORDER BY r.sequence)")" = "bert_large skipped, gemm run"

# Who knows better may try: small enough to fit whatever the estimate says.
runs narrow "$RIDGE" infer gemm:m=64,n=64,k=64 --no-memory-check
finish
