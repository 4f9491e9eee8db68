#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A GPU whose counters see only kernels that were loaded after they were enabled (RIDGE_FAKE_LATE=0): what
# a run misses is counted again in a process of its own. CUDA over the host, and the stand-in for CUPTI.
. tests/lib/tap.sh
. tests/lib/counted_gpu.sh
export TMPDIR="$tap_dir"
export RIDGE_FAKE_COUNTS="sm__sass_thread_inst_executed_op_ffma_pred_on.sum=1000 dram__bytes_read.sum=77"
counts() { # database, environment...
    db=$tap_dir/$1
    shift
    run env "$@" "$RIDGE" run gemm:m=8,n=8,k=8 --device cuda --rounds 1 --no-tune --no-verify --no-layers --no-ceilings \
        --profilers cupti --seconds 0.01 --samples 6 --db "$db"
    ran
}
own="formula GLOB '*; in a process of its own'"

counts plain.db RIDGE_FAKE_LATE=1
asks "operations are counted where the run is" \
    "value = 2000 AND NOT $own FROM metric WHERE source = 'cupti' AND name = 'flops' AND op IS NULL"
counts late.db RIDGE_FAKE_LATE=0
asks "operations are counted in a process of its own" \
    "value = 2000 AND $own FROM metric WHERE source = 'cupti' AND name = 'flops' AND op IS NULL"
asks "those of each step as well" \
    "min(value) = 2000 * 8 AND count(*) = (SELECT count(*) FROM op) FROM metric
     WHERE source = 'cupti' AND name = 'flops' AND op IS NOT NULL"
asks "and bytes with them, once" \
    "count(*) = 1 AND max(value) = 77 FROM metric WHERE source = 'cupti' AND name = 'dram_read_bytes' AND op IS NULL"
check "the other process leaves nothing behind" sh -c "! ls '$tap_dir' | grep ridge-"
counts none.db RIDGE_FAKE_LATE=0 TMPDIR="$tap_dir/not/there"
asks "where there can be none, that is said" \
    "value IS NULL AND reason GLOB '*saw not one operation*; nor in a process of its own: */not/there/*set TMPDIR'
     FROM metric WHERE source = 'cupti' AND name = 'flops' AND op IS NULL"
finish
