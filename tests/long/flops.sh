#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The FLOPs of the model against the instructions that are executed.
. tests/lib/tap.sh

if ! command -v valgrind >/dev/null || ! command -v python3 >/dev/null; then
    echo "needs valgrind and python3: apt-get install valgrind python3"
    exit 77
fi
check "counted FLOPs equal those of the model" python3 tests/oracle/flops.py --ridge "$RIDGE"
cat "$tap_dir/check"
finish
