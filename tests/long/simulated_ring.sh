#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 100 MB on a ring of 128 simulated ranks: within 1 % of the formula, the same figure three times.
RIDGE_SIMULATED_RANKS=128 RIDGE_SIMULATED_BYTES=100000000 exec tests/cli/bench_simulated.sh
