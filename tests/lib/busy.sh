# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Busy neighbours for tests: a loop on every CPU, in a session of its own, so that its priority is
# what another user's would be.
busy_list=""

# Words: what the loops are started with ("nice -n 19"), or nothing.
busy_begin() {
    for _ in $(seq "$(nproc)"); do
        setsid "$@" sh -c 'while :; do :; done' &
        busy_list="$busy_list $!"
    done
}

busy_end() {
    for busy_pid in $busy_list; do
        kill -KILL "$busy_pid" 2>/dev/null
        wait "$busy_pid" 2>/dev/null
    done
    busy_list=""
}
trap 'busy_end; rm -rf "$tap_dir"' EXIT
trap 'exit 1' INT TERM
