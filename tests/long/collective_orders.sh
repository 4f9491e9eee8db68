#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every algorithm and operation in 10,000 seeded orders of events (RIDGE_ORDERS): exact each time,
# and none stands still. make test has the first 200 of them.
. tests/lib/tap.sh
export RIDGE_ORDERS="${RIDGE_ORDERS:-10000}"
runs "${RIDGE_BUILD:-build/release}/tests/unit/test_collective"
prints 'OK \] no_order_of_events_stops_it'
finish
