#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A database of a million samples: every view in less than a second, 100 MB merged in less than 20 s.
. tests/lib/tap.sh

RIDGE_STORE_RESULTS=1000
export RIDGE_STORE_RESULTS
check "a million samples" "${RIDGE_BUILD:-build/release}/tests/unit/test_store_scale"
grep '^# ' "$tap_dir/check"
finish
