#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuDNN itself says, without a GPU, that it has engines for the convolutions, poolings, norms and
# attention of every workload on sm_90 (tests/gpu/support.c). LONG=1: on sm_80 and sm_100, too, in
# layouts that the compiler does not make, and with a plan of each, which compiles those engines that
# are compiled at run time (many minutes of CPU time).
. tests/lib/tap.sh

if [ "${RIDGE_TEST_VENDORS:-1}" = 0 ]; then
    echo "skipped: vendors' libraries are switched off"
    exit 77
fi
support=${RIDGE_BUILD:-build/release}/tests/gpu/support
toolkit=${CUDA_HOME:-/usr/local/cuda}
"$support" --help >"$output" 2>&1
if [ $? = 77 ]; then
    cat "$output"
    exit 77
fi

# The driver's library or the toolkit's stub of it: without either only half of the engines show.
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    if [ ! -e "$toolkit/lib64/stubs/libcuda.so" ]; then
        echo "skipped: no libcuda.so.1 and no stub of it in $toolkit/lib64/stubs"
        exit 77
    fi
    ln -s "$toolkit/lib64/stubs/libcuda.so" "$tap_dir/libcuda.so.1"
    LD_LIBRARY_PATH=$tap_dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi

what="--chip sm_90"
[ -z "${LONG:-}" ] || what="--plans --all --verbose"
run "$support" $what
cat "$output"
exits 0
prints '^# Conv +[1-9]'
prints '^# Attention +[1-9]'
prints '^# [1-9][0-9]* nodes, [1-9][0-9]* distinct'
prints '^[1-9][0-9]* passed, 0 failed'
finish
