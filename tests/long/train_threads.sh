#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same seed gives the same losses and states, bit for bit: twice on one thread, and on one and on two threads. Each
# kernel adds up in an order that does not depend on who computes what.
. tests/lib/tap.sh

train() { # threads, name of its files
    run ridge train "$name" --tiny --steps 5 -t "$1" --no-tune --seed 3 --json --save "$tap_dir/$2"
    exits 0
    jq .losses "$output" >"$tap_dir/$2.losses"
}

same() { # name of files, description
    check "$name: the same losses $2" cmp "$tap_dir/one.losses" "$tap_dir/$1.losses"
    run ridge checkpoint diff "$tap_dir/one" "$tap_dir/$1"
    exits 0
}

"$RIDGE" list --json | jq -r '.[] | select(.modes | index("training")) | .name' >"$tap_dir/names"
while read -r name; do
    train 1 one
    train 1 again
    same again "a second time"
    train 2 two
    same two "on two threads"
done <"$tap_dir/names"
finish
