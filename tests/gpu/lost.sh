#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A device that is lost in the middle of a suite, over the host's runtime (tests/gpu/host/): what
# was planned for it after that is skipped with one reason, everything else is run.
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
if [ ! -f "$build/tests/gpu/host/plugins/cuda.so" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi
RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins
RIDGE_CACHE=$tap_dir/tuner.txt
export RIDGE_PLUGIN_PATH RIDGE_CACHE

db=$tap_dir/lost.db
cat >"$tap_dir/lost.toml" <<EOF
name = "lost"
[defaults]
threads = 1
profilers = ["model"]
[defaults.stop]
interval = 0.5
samples_min = 3
samples_max = 3
seconds_min = 0
seconds_max = 2
[[workload]]
name = "gemm"
m = [16, 17, 18]
n = 16
k = 16
device = ["cuda", "cpu", "cuda:1"]
EOF

# One round, so that points come in the order of the plan.
# lose WHERE ERROR [OPTION...]: the suite while the device goes at that call.
lose() {
    rm -f "$db"
    where=$1
    shift
    run env RIDGE_HOST_LOSE="$where:700" "$RIDGE" run "$tap_dir/lost.toml" --rounds 1 --db "$db" --no-report "$@"
    exits 3
    complains 'the rest of cuda is not run: at .* the device cuda was lost while '
    is "points" 9 "$(sql 'SELECT count(*) FROM result')"
    is "others are run" 6 "$(sql "SELECT count(*) FROM result r JOIN point p ON p.id = r.point
        WHERE p.device != 'cuda' AND r.status = 'ok'")"
}

lose graph_launch:4 --no-ceilings
is "the point that lost it" 1 "$(sql "SELECT count(*) FROM result WHERE status = 'failed'
    AND reason LIKE 'the device cuda was lost while %cudaErrorIllegalAddress%'")"
is "the others there" 2 "$(sql "SELECT count(*) FROM result WHERE status = 'skipped'
    AND reason LIKE 'not run: at gemm% the device cuda was lost while %cudaErrorIllegalAddress%'")"
is "reasons of those that were skipped" 1 \
    "$(sql "SELECT count(DISTINCT reason) FROM result WHERE status = 'skipped'")"

# In the trial of a candidate: the next process leaves it out.
rm -f "$RIDGE_CACHE"
lose launch:1 --no-ceilings
is "the candidate is named" 1 "$(sql "SELECT count(*) FROM result WHERE status = 'failed'
    AND reason LIKE '%device lost with cuda_matmul, variant 0%on trial%'")"
run ridge run "$tap_dir/lost.toml" --rounds 1 --db "$db" --no-ceilings --no-report
is "the next run loses nothing" 9 \
    "$(sql "SELECT count(*) FROM result WHERE run = 2 AND status = 'ok'")"

finish
