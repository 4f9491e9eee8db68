#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From `ridge run --device cuda --profilers cupti` to the report page without a GPU: the CUDA plug-in
# over the host (tests/gpu/host/) with a GPU of one multiprocessor and 300 kB of cache, which is what
# sizes the ceilings' kernels, and the library that stands in for CUPTI (tests/cupti_fake/). What is
# right is what this tells, not what is fast.
. tests/lib/tap.sh
. tests/lib/counted_gpu.sh
export RIDGE_HOST_UNITS=1 RIDGE_HOST_CACHE=300000
export RIDGE_HOST_DRY=roofs # what they do is looked at by tests/unit/test_device_ceilings.c
db=$tap_dir/gpu.db

runs ridge peaks --device cuda --quick --json
holds 'map(.name) | index("fma f32") and index("wgmma bf16") and index("read DRAM") and index("launch graph")'
holds 'all(.[]; .device == "cuda" and .threads == 0 and (.value > 0 or .reason))'
holds '[.[].kind] | unique == ["bandwidth", "capacity", "compute", "latency"]'
run ridge peaks --device cuda --quick --json --only launch
holds '[.[].name] == ["launch stream", "launch graph", "launch wait"]'
holds 'map(.clock_hz) == [1.98e9, 1.98e9, null]'
run ridge peaks --device cuda:1 --quick
exits 5
complains 'there (is|are) 1 cuda device'

export RIDGE_TRACE="$tap_dir/trace"
run ridge run ncf --device cuda --rounds 1 --batch 2 --threads 1 --no-tune --profilers cupti,cupti_trace,nvml \
    --no-report --interval 0 --seconds 0.05 --samples 6 --db "$db" --json
ran
holds 'length == 1 and .[0].device == "cuda" and .[0].max_rel_error < 1e-5'
asks "a valid result or a disturbed one" "count(*) = 1 FROM result WHERE status = 'ok'"
asks "ceilings of the GPU, which is used whole" \
    "count(*) > 15 AND min(threads = 0) FROM ceiling WHERE device = 'cuda' AND value > 0"
asks "each with the clock that it was measured at" \
    "count(*) > 15 AND min(clock_hz = 1.98e9) FROM ceiling WHERE device = 'cuda' AND how = 'measured' AND value > 0
     AND name <> 'launch wait'"
asks "ceilings of the CPU" \
    "count(*) > 5 FROM ceiling WHERE device = 'cpu' AND threads = 1 AND value > 0"
asks "the peak is that of the GPU in f32" \
    "m.value = c.value FROM metric AS m, ceiling AS c
     WHERE m.name = 'peak_flop_rate' AND c.device = 'cuda' AND c.name = 'fma f32'"
asks "the clock is the GPU's" "value = 1.98e9 FROM metric WHERE name = 'clock_hz'"
asks "the GPU's name and driver among the machine's facts" \
    "count(*) = 2 FROM env_fact WHERE category = 'gpu' AND value IN ('a made GPU', '999.1')"
asks "why its clock is what it is, by the call's newer name" \
    "count(*) > 0 FROM run_fact WHERE key = '0_throttle_reasons' AND value = '0x0' AND source LIKE '%EventReasons'"
asks "CUPTI's counts of the whole" \
    "count(*) = 3 FROM metric WHERE source = 'cupti' AND op IS NULL AND value > 0
     AND name IN ('flops', 'dram_read_bytes', 'dram_write_bytes')"
asks "CUPTI's counts of every step" \
    "count(DISTINCT op) = (SELECT count(*) FROM op) FROM metric
     WHERE source = 'cupti' AND name = 'flops' AND op IS NOT NULL"

asks "energy from before CUPTI attached, though it was named last" \
    "count(*) = 1 FROM metric WHERE source = 'nvml' AND name = 'energy_j' AND value > 0"
asks "a trace without what CUPTI's start cost the first executions" \
    "count(*) = 1 FROM metric WHERE source = 'cupti_trace' AND name = 'gap_longest_s' AND abs(value - 8e-6) < 1e-9"

run ridge report --db "$db" --output "$tap_dir/report"
ran
page=$tap_dir/report/index.html
check "the page has the GPU's ceilings" grep -q 'wgmma bf16' "$page"
check "and what was counted, step by step" grep -q 'Counted step by step' "$page"
check "with the operations over the model's" grep -q 'data-label="Executed"' "$page"
check "the point has a roof" grep -q 'of its roof; ' "$page"
check "the roofline over counted bytes" test -s "$tap_dir/report/plots/roofline_counted.dat"
check "its roofs are the GPU's" grep -q 'DRAM [0-9.e+]* [GT]B/s' "$tap_dir/report/plots/roofline_counted.dat"
check "and none of the CPU" sh -c "! grep -q 'L1 [0-9]' '$tap_dir/report/plots/roofline_counted.dat'"

# What kernels compute has been compared; from here on they do nothing.
export RIDGE_HOST_DRY=1

# A kernel that crashes after the timed phase: while it is counted, or while its layers are timed. Replays
# of the recorded graph are no launches, so the 40th is the first of a later phase.
export RIDGE_HOST_FAIL=launch:40
run ridge run ncf --device cuda --rounds 1 --batch 2 --threads 1 --no-tune --no-verify --no-layers --no-ceilings --no-report \
    --profilers cupti --interval 0 --seconds 0.02 --samples 6 --db "$tap_dir/crash.db"
ran
run sqlite3 "$tap_dir/crash.db" "SELECT count(value), max(reason) FROM metric WHERE source = 'cupti'"
prints '^0.node "[^"]+", kernel .*unspecified launch failure'
run ridge run ncf --device cuda --rounds 1 --batch 2 --threads 1 --no-tune --no-verify --no-ceilings --no-report \
    --interval 0 --seconds 0.02 --samples 6 --db "$tap_dir/crash_layers.db"
exits 3
run sqlite3 "$tap_dir/crash_layers.db" "SELECT status, reason FROM result"
prints '^failed.the device cuda was lost while timing layers: node "[^"]+", kernel .*unspecified launch failure'
unset RIDGE_HOST_FAIL

# Samples of a GPU that heat holds down are not to be trusted.
RIDGE_FAKE_HEAT=1
export RIDGE_FAKE_HEAT
run ridge run ncf --device cuda --rounds 1 --batch 2 --threads 1 --no-tune --no-verify --no-layers --no-ceilings --no-report \
    --interval 0 --seconds 0.05 --samples 6 --db "$tap_dir/hot.db"
exits 4
run sqlite3 "$tap_dir/hot.db" "SELECT verdict, reason FROM result"
prints '^invalid.throttled: heat held the clock down for [0-9]'
unset RIDGE_FAKE_HEAT
export RIDGE_FAKE_SLOW=0x88
run ridge run ncf --device cuda --rounds 1 --batch 2 --threads 1 --no-tune --no-verify --no-layers --no-ceilings --no-report \
    --interval 0 --seconds 0.05 --samples 6 --db "$tap_dir/slow.db"
exits 4
run sqlite3 "$tap_dir/slow.db" "SELECT verdict, reason FROM result"
prints '^invalid.throttled: .* slowdown, power brake'
unset RIDGE_FAKE_SLOW

# Without ceilings nothing of the CPU stands in, without NVML no clock.
export RIDGE_NVML=/nonexistent.so
run ridge run ncf --device cuda --rounds 1 --batch 2 --threads 1 --no-tune --no-verify --no-layers --no-ceilings --no-report \
    --interval 0 --seconds 0.02 --samples 6 --db "$tap_dir/none.db"
ran
run sqlite3 "$tap_dir/none.db" "SELECT reason FROM metric WHERE name = 'fraction_of_peak'"
prints 'no ceilings'
run sqlite3 "$tap_dir/none.db" "SELECT value IS NULL, reason FROM metric WHERE name = 'clock_hz'"
prints '^1.*nvml'

# What judges counts of known work on a GPU: made counts of a device that does nothing (25 MB copied,
# a cache of 300 kB). Right ones pass, also where the cache kept all that it can; others do not.
RIDGE_NVML=$RIDGE_CUPTI
RIDGE_CACHE=$tap_dir/cache.txt
export RIDGE_CACHE
ffma=sm__sass_thread_inst_executed_op_ffma_pred_on.sum
counts() { # multiply-adds, bytes read, bytes written
    run env "RIDGE_FAKE_COUNTS=$ffma=$1 dram__bytes_read.sum=$2 dram__bytes_write.sum=$3" \
        tools/gpu_counts.sh "$RIDGE" cuda 100 2500 6250000
}
counts 1000000 25000000 25000000
exits 0
prints '^ok   copy cupti_pm dram_write_bytes +25000000\.0 of 25000000, ratio 1\.0000 .0\.9880 to 1\.0200.'
prints '^10 passed, 0 failed'
counts 991000 24701000 25490000
exits 0
counts 1009000 24699000 25510000
exits 1
prints '^ok   f16 cupti flops +2018000\.0 of 2000000, ratio 1\.0090'
prints '^FAIL row cupti dram_read_bytes +24699000\.0 of 25000000, ratio 0\.9880'
prints '^FAIL row cupti_pm dram_read_bytes '
prints '^FAIL copy cupti dram_read_bytes '
prints '^FAIL copy cupti_pm dram_write_bytes +25510000\.0 of 25000000, ratio 1\.0204'
prints '^4 passed, 6 failed'
counts 1011000 25000000 25000000
exits 1
prints '^FAIL tf32 cupti flops +2022000\.0 of 2000000, ratio 1\.0110'
prints '^6 passed, 4 failed'
run env RIDGE_CUPTI=/nonexistent.so tools/gpu_counts.sh "$RIDGE" cuda 100 2500 6250000
exits 1
prints '^FAIL copy cupti dram_read_bytes +not counted of .*nonexistent'

# What judges the costs of replays: replays of 0.1 s that the host makes nothing longer, then with
# 10 ms before each; last, records that are not those of the replays.
runs ridge explain ncf --device cuda # tunes, while replays take no time
replays() {
    run env RIDGE_HOST_REPLAY_NS=100000000 "$@" tools/gpu_replay.sh "$RIDGE" cuda ncf
}
replays RIDGE_FAKE_REPLAYS=1
exits 0
prints '^ok   own part of an execution: -?[0-9.]+ us of .* s; launch and wait: .* s; steps: 1$'
prints '^ok   ncf: graph (0\.9[5-9]|1\.0)[0-9]*, kernels (0\.9[5-9]|1\.0)[0-9]* of 0\.1[0-9]* s; launches: 1\.0, '
replays RIDGE_FAKE_REPLAYS=1 RIDGE_HOST_GAP_NS=10000000
exits 1
prints '^FAIL own part of an execution: 1[0-9]{4}\.[0-9]+ us '
prints '^FAIL ncf: graph 0\.(8|90)'
run tools/gpu_replay.sh "$RIDGE" cuda ncf
exits 1
prints '^ok   own part'
prints '^FAIL ncf: .* launches: 0\.'
run env RIDGE_CUPTI=/nonexistent.so tools/gpu_replay.sh "$RIDGE" cuda ncf
exits 1
prints '^FAIL ncf: graph 0\.0000'
finish
