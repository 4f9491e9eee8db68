#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What tiny forms know of samples that they have not seen, after minutes. That a linear model cannot tell the images
# apart is in tests/unit/test_classes.c.
. tests/lib/tap.sh

learn() { # workload, more words
    name=$1
    shift
    run ridge train "$name" --tiny -t 1 --no-tune --json "$@"
    exits 0
}

for seed in 0 1; do
    learn resnet50 --steps 200 --seed $seed
    holds '.held_out[-1].quality >= 0.99'
done
learn gcn
holds '.held_out[-1].quality >= 0.7'

# Words of letters and digits; guessing reads none. Small steps at the end.
learn crnn --optimiser adam --rate 0.002 --steps 4000 --save "$tap_dir/words"
learn crnn --optimiser adam --rate 0.0002 --steps 4600 --resume "$tap_dir/words"
holds '.held_out[-1].quality >= 0.95'
finish
