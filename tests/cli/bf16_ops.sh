#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every operator that can have floats of 16 bits as bf16, on every kernel of the CPU that accepts it.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}
run "$build/tests/ops/run" --providers native --floats bf16
tail -1 "$output"
grep "^not ok" "$output" | head -20
exits 0
prints '^[0-9]{5,} passed, 0 failed$'
finish
