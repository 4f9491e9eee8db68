#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What nvcc said of the own kernels: every one has machine code for every chip that is built for, and
# none spills more than a few registers. The tables of docs/gpu.md come from the same file.
# shellcheck disable=SC2016 # awk, not the shell, reads these dollars
. tests/lib/tap.sh

usage=${RIDGE_BUILD:-build/release}/cuda_usage.txt
if [ ! -e "$usage" ]; then
    echo "skipped: no CUDA toolkit when this was built"
    exit 77
fi

# Lines "CHIP REGISTERS SPILLED KERNEL"; sm_90a stands for sm_90, which wgmma is a part of.
awk '
    /Compiling entry function/ {
        chip = $0; sub(/.* for ./, "", chip); sub(/.$/, "", chip)
        kernel = $0; sub(/.*entry function ./, "", kernel); sub(/. for .*/, "", kernel)
    }
    / bytes spill stores/ { spilled = $0; sub(/ bytes spill stores.*/, "", spilled); sub(/.*, /, "", spilled) }
    / Used [0-9]+ registers/ {
        registers = $0; sub(/.* Used /, "", registers); sub(/ registers.*/, "", registers)
        print chip, registers, spilled + 0, kernel
        spilled = 0
    }' "$usage" >"$tap_dir/kernels"
check "machine code for a chip" grep -q '^sm_[0-9]' "$tap_dir/kernels"
# Roofs whose instructions only some chips have are left aside.
check "every kernel has code for every chip" awk '
    { name = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", name) }
    name !~ /wgmma|mma_f8/ { n[name]++; chips[$1] = 1 }
    END {
        for (chip in chips) wanted++
        for (k in n) if (n[k] < wanted) { print "# not for every chip: " k; bad = 1 }
        exit bad
    }' "$tap_dir/kernels"
check "none spills more than ten registers" awk '$3 > 40 { print "# " $0; bad = 1 } END { exit bad }' \
    "$tap_dir/kernels"
# Left: integers, which no workload multiplies.
check "the hot ones spill none" awk '
    /matmul_bytes/ { next }
    $3 > 0 && /matmul_|conv_tile|conv_few|attention|softmax|layernorm|elementwise|rnn_|lstm_cluster|decoder_/ { print "# " $0; bad = 1 }
    END { exit bad }' "$tap_dir/kernels"
# Recorded in the log: registers of the hot ones, by chip.
awk '/matmul_|conv_tile|conv_few|attention|softmax|rnn_s|lstm_cluster|decoder_layer|decoder_tensor/ { print "# " $0 }' "$tap_dir/kernels"
finish
