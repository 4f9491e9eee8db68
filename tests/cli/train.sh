#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every workload that can be trained learns in its tiny form, and the same seed gives the same losses.
. tests/lib/tap.sh

jq_list='.[] | select(.modes | index("training")) | .name'
for name in $("$RIDGE" list --json | jq -r "$jq_list"); do
    run ridge train "$name" --tiny --quick-tune -t 1 --json
    exits 0
    holds '.loss_last <= .loss_first / 2'
    holds '.steps == .steps_wanted and (.losses | length) == .steps'
    holds '.held_out | length == 1 and (.[0].loss | type) == "number"'
done

run ridge train ncf --tiny --steps 40 --eval-every 20 -t 1 --quick-tune --json
exits 0
holds '.held_out | map(.step) == [20, 40]'
holds '.quality == "AUC" and .held_out[1].quality > 0.4 and .held_out[1].quality <= 1'
jq .losses "$output" >"$tap_dir/losses"
run ridge train ncf --tiny --steps 40 -t 2 --quick-tune --json
jq .losses "$output" >"$tap_dir/again"
check "the same seed, the same losses, on one thread and on two" \
    cmp "$tap_dir/losses" "$tap_dir/again"
run ridge train ncf --tiny --steps 40 --seed 1 -t 1 --quick-tune --json
jq .losses "$output" >"$tap_dir/other"
check "another seed, other losses" sh -c "! cmp -s '$tap_dir/losses' '$tap_dir/other'"

run ridge train ncf --tiny --steps 20 -t 1 --quick-tune --optimiser sgd --rate 0.5
exits 0
prints 'sgd, rate 0\.5'
prints 'waiting for input'
complains 'step 20 of 20: loss'

# A training that stopped goes on as if it had not: the same losses and the same states, bit for bit.
run ridge train ncf --tiny --steps 40 -t 1 --quick-tune --save "$tap_dir/whole"
exits 0
# Constant rates do not depend on how many steps there will be.
run ridge train ncf --tiny --steps 15 -t 1 --quick-tune --save "$tap_dir/part" --save-every 5
exits 0
run ridge train ncf --tiny --steps 40 -t 1 --quick-tune --resume "$tap_dir/part" --save "$tap_dir/rest" --json
exits 0
holds '.first_step == 15 and .steps == 40 and (.losses | length) == 25'
jq '.losses' "$output" >"$tap_dir/rest_losses"
jq '.[15:]' "$tap_dir/losses" >"$tap_dir/whole_losses"
check "the same losses" cmp "$tap_dir/rest_losses" "$tap_dir/whole_losses"
run ridge checkpoint diff "$tap_dir/whole" "$tap_dir/rest"
exits 0
run ridge checkpoint diff "$tap_dir/whole" "$tap_dir/part"
exits 1
run ridge train wide_deep --tiny --resume "$tap_dir/part"
exits 2
complains 'is of ncf'
run ridge train ncf --tiny --batch 8 --resume "$tap_dir/part"
exits 2
complains 'batches of another size'
run ridge train ncf --tiny --steps 15 --resume "$tap_dir/part"
exits 2
complains 'has made 15 steps'
run ridge train ncf --tiny --save-every 5
exits 2

# What cannot be.
run ridge train gemm
exits 5
complains 'gemm is not trained'
run ridge train nfc
exits 2
complains 'not known'
run ridge train ncf --optimiser adm
exits 2
complains 'did you mean "adam"'
run ridge train ncf --tiny --rate 1e30 --steps 50 --optimiser sgd -t 1 --quick-tune
exits 3
complains 'the loss of step [0-9]+ is .*smaller --rate'
finish
