#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One rule for numbers: what is out of its range is refused with the range, by every command.
. tests/lib/tap.sh
for words in "explain ncf" "verify ncf" "infer tests/none.onnx" "run ncf" "plan ncf"; do
    for option in "-t 100000" "-t 0" "-t -1" "-b 0" "-b -1" "-b 99999999999" "--max-error -1" "--max-error 2"; do
        case "$words $option" in "plan "*--max-error*) continue ;; esac
        refuses ' 1(e-12)? to (65536|1000000000|1|1e\+09)' ridge $words $option
        prints_nothing
    done
done
for words in "graph ncf -b" "import tests/none.onnx -b" "export ncf -o none.onnx -b" "peaks -t" "history --last" \
    "plot roofline --result" "run --interleave a b ncf --repeat"; do
    for number in 0 -1 99999999999 x; do
        refuses 'needs (a value from 1 to [0-9]+|an integer), got' ridge $words $number
        prints_nothing
    done
done
for option in --limit --detect; do
    for number in 0 -1 1001; do # 0 was taken for the default without a word
        refuses "$option needs a value from 1e-09 to 1000, got \"$number\"" ridge compare a b $option $number
    done
done

# Each name once.
run ridge run ncf --no-db --profilers bogus
exits 2
check "profilers are named once" sh -c 'sed "s/.*none of: //" "$0" | tr -d "," | tr " " "\n" | sort | uniq -d | wc -l | grep -qx 0' "$errors"
complains 'none of: clock, cupti.*papi, powercap'

finish
