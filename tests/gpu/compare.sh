#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The comparison with PyTorch on a GPU, without one: samples on request come from the device that was
# asked for (over the host, tests/gpu/host/), and networks made of exported files compute the same.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}

RIDGE_PLUGIN_PATH=/nonexistent
export RIDGE_PLUGIN_PATH PYTHONDONTWRITEBYTECODE=1
run ridge run ncf --device cuda --batch 2 --no-tune --on-request
exits 5
if [ -f "$build/tests/gpu/host/plugins/cuda.so" ] && /usr/bin/python3 -c 'import torch, onnx' 2>/dev/null; then
    RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins
    run /usr/bin/python3 tests/gpu/compare_torch.py --ridge "$RIDGE" --check-only ncf@2 wide_deep@2 \
        --precisions f32,bf16
    exits 0
    run /usr/bin/python3 tests/gpu/compare_torch.py --ridge "$RIDGE" --torch-device cpu --no-compile \
        --option=--no-tune --samples 3 --seconds 0.1 --precisions f32 ncf@2 --json "$tap_dir/rows.json"
    exits 1 # a GPU of fibers is slower than any CPU
    prints '^FAIL geometric mean 0\.[0-9]+ x PyTorch eager, wanted 1\.50'
    check "rows as JSON" jq -e '.[0].ridge > .[0].eager' "$tap_dir/rows.json"
fi
finish
