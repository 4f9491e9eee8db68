# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For tests that count what a GPU does, without one: after `. tests/lib/tap.sh`, the CUDA plug-in over
# the host (tests/gpu/host/), and the library that stands in for CUPTI, the driver and NVML
# (tests/cupti_fake/). The test is skipped where they are not built. Then
#
#     run ridge run ...; ran      a run whose machine may have been disturbed
#     asks "what" SQL             an expression of SQL that is 1 in the database $db
build=${RIDGE_BUILD:-build/release}
for file in gpu/host/plugins/cuda.so cupti_fake/fake.so; do
    if [ ! -f "$build/tests/$file" ]; then
        echo "skipped: tests/$file is not built here"
        exit 77
    fi
done
export RIDGE_PLUGIN_PATH="$build/tests/gpu/host/plugins:$build/plugins"
export RIDGE_CUPTI="$PWD/$build/tests/cupti_fake/fake.so" RIDGE_LIBCUDA="$PWD/$build/tests/cupti_fake/fake.so"
export RIDGE_NVML="$RIDGE_CUPTI" RIDGE_HOST_GPUS=1
export RIDGE_HOST_WATCH=0 # races.sh

# 4: the machine was disturbed, which is the machine's fault.
ran() {
    [ "$code" = 0 ] || [ "$code" = 4 ]
    tap_result $? "$tap_what: exit code 0 or 4"
}

asks() {
    run sqlite3 "$db" "SELECT $2"
    grep -qx 1 "$output"
    tap_result $? "$1"
}
