# SPDX-License-Identifier: Apache-2.0
# Sourced after tap.sh by tests of ranks that learn together.
# shellcheck shell=sh disable=SC2154 # tap.sh sets what is not set here
quick="-t 1 --no-tune"

near() { # two checkpoints
    run ridge checkpoint diff "$1" "$2" --json --tolerance 1e-6
    exits 0
    holds '(.tensors | length > 0) and .worst_of_kind <= 1e-6'
}

# N ranks of batch b make the steps of one rank of batch N b. What is left is rounding: sums in
# another order, which Adam turns into steps of some 1e-7 where a gradient is not far from 0.
# both: options of both.
both=""
same_as_one() { # workload, ranks, batch of each, options of scale
    spec=$1 ranks=$2 batch=$3
    shift 3
    run ridge train "$spec" $quick $both --tiny --batch $((ranks * batch)) --steps 10 --seed 5 \
        --save "$tap_dir/one" --json
    exits 0
    jq .losses "$output" >"$tap_dir/losses"
    run ridge scale "$spec" $quick $both --tiny --ranks "$ranks" --batch "$batch" --steps 10 \
        --seed 5 "$@" --save "$tap_dir/many" --json
    exits 0
    holds ".points | length == 1 and .[0].ranks == $ranks and .[0].batch == $((ranks * batch))"
    holds ".points[0].losses as \$many | $(cat "$tap_dir/losses") as \$one |
        [\$many, \$one] | transpose | all(.[]; ((.[0] - .[1]) | fabs) <= 1e-5 * (1 + .[1]))"
    near "$tap_dir/one" "$tap_dir/many"
}

# After one step moments are gradients and their squares, whatever the optimiser makes of them.
same_gradients() { # workload, ranks, batch of each, options of scale
    spec=$1 ranks=$2 batch=$3
    shift 3
    runs ridge train "$spec" $quick $both --tiny --batch $((ranks * batch)) --steps 1 --seed 5 \
        --save "$tap_dir/one" --json
    runs ridge scale "$spec" $quick $both --tiny --ranks "$ranks" --batch "$batch" --steps 1 \
        --seed 5 "$@" --save "$tap_dir/many" --json
    run ridge checkpoint diff "$tap_dir/one" "$tap_dir/many" --json
    holds '[.tensors[] | select(.name | test("[.](adamw?[01]|momentum0)$"))] | length > 0 and all(.[]; .of_kind <= 1e-6)'
}
