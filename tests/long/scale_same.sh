#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# N ranks of batch b make the steps of one rank of batch N b: 2 to 5 ranks, tables and moments whole
# and split, gradients whole and as rows. Where networks normalise, with statistics of all ranks.
# Rates are a tenth of the usual ones and less: where a gradient is near 0 Adam divides one rounding
# by another, and a step of NMT with the tiny form's rate makes any rounding three times as large.
. tests/lib/tap.sh
. tests/lib/ranks.sh
for ranks in 2 3 4 5; do
    for how in "" "--moments split" "--tables split" "--tables split --moments split" "--tables rows"; do
        # shellcheck disable=SC2086
        {
            both="--rate 0.0001"
            same_as_one ncf:embedding=gather $ranks 12 $how
            both=""
            same_as_one wide_deep $ranks 12 $how
            same_as_one din $ranks 8 --sync-batch-norm $how
        }
    done
    for how in "" "--moments split"; do
        # shellcheck disable=SC2086
        {
            both="--rate 0.00001"
            same_as_one bert_base $ranks 2 $how
            both="--rate 0.2"
            same_as_one nmt:dropout=inputs $ranks 6 $how
            both=""
        }
    done
done
finish
