#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What holds for every command.
. tests/lib/tap.sh

runs ridge
prints 'ridge run resnet50'

runs ridge help
commands=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$output")
prints '^  version '

runs ridge --help
prints '^Commands:'

for command in $commands; do
    runs ridge "$command" -h
    prints "^Usage: ridge $command"
    prints '-h, --help'
    runs ridge help "$command"
    refuses 'unknown option --no-such-option' ridge "$command" --no-such-option
    prints_nothing
    refuses 'unknown option -%' ridge "$command" -%
    prints_nothing
    # A slip in an option is answered with the option that was meant.
    run ridge "$command" -h
    option=$(sed -n 's/^ .*--\([a-z-]\{4,\}\).*/\1/p' "$output" | head -1)
    if [ "$option" != help ]; then
        refuses "did you mean --$option" ridge "$command" "--x$option"
    fi
    # So is a word that means nothing to the command.
    refuses '^ridge' ridge "$command" no-such-word no-such-word-either
done

runs ridge help --markdown
prints '^## ridge doctor'

refuses 'did you mean "run"' ridge runn
prints_nothing

refuses 'ridge help' ridge zzzzzzzz

run ridge help zzzzzzzz
exits 2

runs ridge version
prints '^ridge [0-9]+\.[0-9]+'

runs ridge --version

run ridge version --json
holds '.version and .commit and .compiler and .flags and (.isas | contains("scalar"))'

refuses 'surplus' ridge version surplus

# A result that cannot be written is an error.
refuses 'cannot write' sh -c "$RIDGE list >/dev/full"
# Help was believed to have been read.
refuses 'ridge run: cannot write' sh -c "$RIDGE run -h >/dev/full"
refuses 'ridge: cannot write' sh -c "$RIDGE >/dev/full"
refuses 'ridge help: cannot write' sh -c "$RIDGE --help >/dev/full"

# Of two options of which one has no effect beside the other, neither is dropped in silence.
refuses 'only one of --json and --dot' ridge graph ncf --json --dot
for option in "--batch 3" "--precision bf16" "--mode training" "--inputs-dir x" "--part before-decisions" --external; do
    refuses "^ridge: ${option%% *} is for models, and --format writes results" ridge export --format csv $option
done
for option in "--limit 3" "--detect 3" --json --markdown --junit --github "--output $tap_dir/none"; do
    refuses "^ridge: ${option%% *} has no effect: --set-baseline compares nothing" \
        ridge compare latest --set-baseline x $option --db "$tap_dir/none.db"
done
for options in "--markdown --man" "--man --completion bash" "--completion bash --words runs"; do
    refuses 'only one of --markdown, --man, --completion and --words' ridge help $options
    prints_nothing
done
refuses '\-\-db belongs to --words' ridge help --db x.db
for option in "--run latest" "--against latest" "--result 1" "--output x" --svg --png --pdf; do
    refuses 'which plot[?] .ridge plot. lists them' ridge plot $option
done
refuses 'only one of --json, which has every node, and --summary' ridge predict ncf --json --summary
refuses '\-\-tolerance belongs to checkpoint diff' ridge checkpoint show none --tolerance 0.1
refuses '\-\-host is of a POINT; without one all points are listed' ridge history --host x
refuses '\-\-last is of a POINT; without one all points are listed' ridge history --last 3
refuses '\-\-against is for plots of two runs, and roofline shows one run' \
    ridge plot roofline --against latest --db "$tap_dir/none.db"

finish
