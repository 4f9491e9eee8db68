#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# N ranks of batch b make the steps of one rank of batch N b: 2 to 5 ranks, tables and moments whole
# and split, gradients whole and as rows. Where networks normalise, with statistics of all ranks.
# Rates are the usual ones. Adam divides by gradients: where one is near 0, a rounding of it becomes
# a visible part of a step (docs/method.md). So ncf and bert make ten steps by momentum, which does
# not divide, and one by Adam, whose moments then are the gradients and their squares; ten by Adam
# in small steps show that moments are kept as they should be.
. tests/lib/tap.sh
. tests/lib/ranks.sh

same_by_adam() { # a small rate, then what same_as_one takes
    small=$1
    shift
    both="--optimiser momentum"
    same_as_one "$@"
    both="--rate $small"
    same_as_one "$@"
    both=""
    same_gradients "$@"
}

for ranks in 2 3 4 5; do
    for how in "" "--moments split" "--tables split" "--tables split --moments split" "--tables rows"; do
        # shellcheck disable=SC2086
        {
            same_by_adam 0.0001 ncf:embedding=gather $ranks 12 $how
            same_as_one wide_deep $ranks 12 $how
            same_as_one din $ranks 8 --sync-batch-norm $how
        }
    done
    for how in "" "--moments split"; do
        # shellcheck disable=SC2086
        {
            same_by_adam 0.00001 bert_base $ranks 2 $how
            # Roundings grow with each step: to 8e-8 in ten, by the published rate of 1 to as much as 1.2e-6.
            both="--rate 0.5"
            same_as_one nmt:dropout=inputs $ranks 6 $how
            both=""
        }
    done
    # Its loss divides by how many cells are on text, of which ranks have unequal numbers; after a step the
    # hardest cells, which it learns from, may be others by a rounding.
    same_gradients seglink $ranks 1
    # So may the regions that are proposed.
    same_gradients faster_rcnn $ranks 2
done
# Every sample of gcn is the whole graph.
for how in "" "--moments split"; do
    # shellcheck disable=SC2086
    {
        runs ridge train gcn $quick --tiny --steps 10 --seed 5 --save "$tap_dir/one"
        runs ridge scale gcn $quick --tiny --steps 10 --seed 5 -n 4 $how --save "$tap_dir/many"
        near "$tap_dir/one" "$tap_dir/many"
    }
done
finish
