#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank that a launcher started runs the destructors of libraries at its end: in one of them, MPICH
# from version 4.2 on takes leave of its launcher, which otherwise kills the other ranks, and
# what they have printed is lost. Other processes do not run them, because some never return.
. tests/lib/tap.sh
RIDGE_PLUGIN_PATH=${RIDGE_BUILD:-build/release}/tests/plugin_sample
RIDGE_SAMPLE=farewell
export RIDGE_PLUGIN_PATH RIDGE_SAMPLE

ends() { # 0 or 1 farewells, command
    wanted=$1
    shift
    run "$@"
    is "$tap_what: farewells" "$wanted" "$(grep -c '^sample: farewell$' "$errors")"
}

ends 0 ridge doctor
exits 0
ends 1 env PMI_RANK=0 PMI_SIZE=2 "$RIDGE" doctor
exits 0
ends 1 env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "$RIDGE" doctor
exits 0
# What failed must not wait for anybody: the launcher ends the other ranks.
ends 0 env PMI_RANK=0 PMI_SIZE=2 "$RIDGE" train no_such_workload
exits 2
finish
