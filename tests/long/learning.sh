#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What tiny forms know of samples that they have not seen, after minutes. That a linear model cannot tell the images
# apart is in tests/unit/test_classes.c.
. tests/lib/tap.sh

learn() { # workload, more words
    name=$1
    shift
    runs ridge train "$name" --tiny -t 1 --no-tune --json "$@"
}

for seed in 0 1; do
    learn resnet50 --steps 200 --seed $seed
    holds '.held_out[-1].quality >= 0.99'
done
learn gcn
holds '.held_out[-1].quality >= 0.7'

# Clicks and the like are random; nobody can be sure of them. How well those do who know how samples are made is part of
# the answer, and these come near.
at_best() {
    learn "$@"
    holds '.held_out[-1] | .quality >= .quality_bayes - 0.02'
    holds '.time_s <= 300'
}
for seed in 0 1; do
    at_best ncf --steps 2000 --seed $seed
    at_best din --steps 1500 --seed $seed
    at_best dien --steps 1000 --seed $seed
    at_best wide_deep --steps 10000 --seed $seed
done

# Objects in scenes, by mean average precision at half an overlap. The published momentum needs epochs.
finds() {
    learn "$@" --optimiser adam --rate 0.001
    holds '.held_out[-1].quality >= 0.9'
    holds '.time_s <= 300'
}
for seed in 0 1; do
    finds ssd300_vgg16 --steps 1000 --seed $seed
done
finds ssd321_resnet18 --batch 4 --steps 1500
finds faster_rcnn --batch 4 --steps 600
finds mask_rcnn --batch 2 --steps 600

# Sentences: words of the translation, and its end.
for seed in 0 1; do
    learn nmt --optimiser adam --rate 0.003 --steps 1500 --seed $seed
    holds '.held_out[-1].quality >= 0.99'
done

# Words of letters and digits; guessing reads none. Small steps at the end.
learn crnn --optimiser adam --rate 0.002 --steps 4000 --save "$tap_dir/words"
learn crnn --optimiser adam --rate 0.0002 --steps 4600 --resume "$tap_dir/words"
holds '.held_out[-1].quality >= 0.95'
finish
