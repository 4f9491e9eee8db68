#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every workload against the float64 reference, with all kernels and with native ones alone.
. tests/lib/tap.sh

for name in $("$RIDGE" list --json | jq -r '.[].name'); do
    runs ridge verify "$name"
    runs ridge verify "$name" --providers native
    runs ridge verify "$name" --batch 3 --no-tune
done

finish
