#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What holds for every command.
. tests/lib/tap.sh

run ridge
exits 0
prints 'ridge run resnet50'

run ridge help
exits 0
commands=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$output")
prints '^  version '

run ridge --help
exits 0
prints '^Commands:'

for command in $commands; do
    run ridge "$command" -h
    exits 0
    prints "^Usage: ridge $command"
    prints '-h, --help'
    run ridge help "$command"
    exits 0
    run ridge "$command" --no-such-option
    exits 2
    complains 'unknown option --no-such-option'
    prints_nothing
    run ridge "$command" -%
    exits 2
    complains 'unknown option -%'
    prints_nothing
    # A slip in an option is answered with the option that was meant.
    run ridge "$command" -h
    option=$(sed -n 's/^ .*--\([a-z-]\{4,\}\).*/\1/p' "$output" | head -1)
    if [ "$option" != help ]; then
        run ridge "$command" "--x$option"
        exits 2
        complains "did you mean --$option"
    fi
    # So is a word that means nothing to the command.
    run ridge "$command" no-such-word no-such-word-either
    exits 2
    complains '^ridge'
done

run ridge help --markdown
exits 0
prints '^## ridge doctor'

run ridge runn
exits 2
complains 'did you mean "run"'
prints_nothing

run ridge zzzzzzzz
exits 2
complains 'ridge help'

run ridge help zzzzzzzz
exits 2

run ridge version
exits 0
prints '^ridge [0-9]+\.[0-9]+'

run ridge --version
exits 0

run ridge version --json
holds '.version and .commit and .compiler and .flags and (.isas | contains("scalar"))'

run ridge version surplus
exits 2
complains 'surplus'

# A result that cannot be written is an error.
run sh -c "$RIDGE list >/dev/full"
exits 2
complains 'cannot write'

finish
