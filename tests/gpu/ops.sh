#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The own CUDA kernels on all cases of their operators, on the host: tests/gpu/host/ runs them block
# by block, fiber by fiber. No GPU and no CUDA toolkit is needed.
set -u
build=${RIDGE_BUILD:-build/release}
plugins=$build/tests/gpu/host/plugins
if [ ! -f "$plugins/cuda.so" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi
RIDGE_PLUGIN_PATH=$plugins exec "$build/tests/ops/run" --providers cuda --device cuda
