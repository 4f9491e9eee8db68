#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The comparison with PyTorch on a GPU, without one: samples on request come from the device that was
# asked for (over the host, tests/gpu/host/), a device that fails gives none, and networks made of
# exported files compute the same. What is measured and judged: tests/gpu/test_compare_torch.py.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}

RIDGE_PLUGIN_PATH=/nonexistent
export RIDGE_PLUGIN_PATH PYTHONDONTWRITEBYTECODE=1
run ridge run ncf --device cuda --batch 2 --no-tune --on-request
exits 5
[ -f "$build/tests/gpu/host/plugins/cuda.so" ] || finish

RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins
# asked QUESTIONS VARIABLE=VALUE: what a program answers that is asked on request; "." is an empty line.
asked() {
    tap_what="on request $*"
    echo "$1" | tr ' ' '\n' | tr -d . |
        env "$2" "$RIDGE" run ncf --device cuda --batch 2 --no-tune --on-request >"$output" 2>"$errors"
    code=$?
}
answers() {
    [ "$(grep -cE '^[0-9]+\.[0-9]+$' "$output")" = "$1" ]
    tap_result $? "$tap_what: $1 times"
}
asked '. 100 .' RIDGE_HOST_DRY=1
exits 0
answers 3
# After an error of a kernel every call returns at once: no time must be reported.
export RIDGE_HOST_DRY=1
for call in graph_launch:3 stream_synchronize:5 event_record:2 event_elapsed:1; do
    asked '. 5 . 5' RIDGE_HOST_FAIL=$call
    exits 3
    complains 'unspecified launch failure'
done
asked '. . . 5' RIDGE_HOST_FAIL=graph_launch:3
answers 1
unset RIDGE_HOST_DRY
# What is compared is computed by the kernels that were timed.
tuned="wide_deep --device cuda --batch 1 --precision bf16 --threads 1 --cache $tap_dir/cache.txt"
runs env RIDGE_HOST_UNITS=1 "$RIDGE" run $tuned --on-request
cp "$tap_dir/cache.txt" "$tap_dir/before.txt"
runs env RIDGE_HOST_UNITS=1 "$RIDGE" infer $tuned
check "inference tunes nothing anew" cmp "$tap_dir/cache.txt" "$tap_dir/before.txt"
check "there was something to tune" grep -q cuda_ "$tap_dir/cache.txt"

if /usr/bin/python3 -c 'import torch, onnx' 2>/dev/null; then
    compares() {
        run /usr/bin/python3 tests/gpu/compare_torch.py --ridge "$RIDGE" "$@"
    }
    runs /usr/bin/python3 tests/gpu/test_compare_torch.py
    compares --check-only ncf@2 wide_deep@2 --precisions f32,bf16
    exits 0
    measured="--torch-device cpu --no-compile --option=--no-tune --samples 3 --seconds 0.1 --limit 1
        --precisions f32 wide_deep@1"
    compares $measured --json "$tap_dir/rows.json"
    exits 1 # a GPU of fibers is slower than any CPU
    prints '^FAIL geometric mean 0\.[0-9]+ x PyTorch eager, wanted 1\.50 .single executions: 0\.[0-9]+.$'
    check "rows as JSON" jq -e '.[0] | .ridge > .eager and .ridge_latency > .eager_latency and
        .ridge_error < 1e-5 and .error < 1e-5' "$tap_dir/rows.json"
    # A GPU that does nothing is fast: what it computes is compared as well.
    RIDGE_HOST_DRY=1
    export RIDGE_HOST_DRY
    compares $measured
    exits 1
    prints "^FAIL wide_deep f32: Ridge's outputs differ"
    RIDGE_HOST_FAIL=graph_launch:4
    export RIDGE_HOST_FAIL
    compares $measured
    exits 1
    prints '^FAIL wide_deep f32: .*--on-request.* instead of a time in ms'
fi
finish
