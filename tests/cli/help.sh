#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is generated from the tables of commands and options: man page, completion, reference.
. tests/lib/tap.sh

run ridge help
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' "$output")

runs ridge help --man
cp "$output" "$tap_dir/ridge.1"
for command in $commands; do
    check "the man page has $command" grep -q "^.SS \"ridge $command\"" "$tap_dir/ridge.1"
done
if command -v groff >/dev/null; then
    runs groff -man -ww -Tascii -P-cbou "$tap_dir/ridge.1"
    check "groff has nothing to warn of" test ! -s "$errors"
    prints 'EXIT STATUS'
    prints 'samples_min'
else
    echo "# groff is not here: the man page is not formatted"
fi

runs ridge help --markdown
for command in $commands; do
    check "the reference has $command" grep -q "^## ridge $command\$" "$output"
done
prints '^### \[\[workload\]\]'

runs ridge help --completion bash
cp "$output" "$tap_dir/ridge.bash"
# Prints what bash offers for a command line whose last word is being written.
cat >"$tap_dir/offer" <<'END'
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_ridge
printf '%s\n' "${COMPREPLY[@]}"
END
offers() { # wanted, words of the command line...
    wanted=$1
    shift
    run bash "$tap_dir/offer" "$tap_dir/ridge.bash" "$@"
    prints "^$wanted\$"
}
offers plan ridge pl
offers resnet50 ridge plan res
offers table1 ridge plan ta
offers --threads ridge plan --thr
offers -b ridge plan -
offers kernels ridge list k
offers suite.toml ridge help su
# Values of options.
offers cuda ridge run --device c
offers offline ridge run ncf --scenario = of
offers single_stream,server ridge run --scenario single_stream,se
offers avx2 ridge run --isa ''
offers openmetrics ridge export -f open
offers roofline_ops ridge plot roof
offers native ridge run --providers nat
offers fish ridge help --completion fis
run bash "$tap_dir/offer" "$tap_dir/ridge.bash" ridge run --db ''
check "a file is left to the shell" test -z "$(cat "$output")"
# What only a database knows.
. tests/lib/made_runs.sh
made_db "$tap_dir/made.db"
made_run "$tap_dir/made.db" 1 aaaa1111-0000 tag=nightly-1
made_run "$tap_dir/made.db" 2 bbbb2222-0000
made_point "$tap_dir/made.db" 1 resnet50 10
ridge=$(realpath "$RIDGE")
offers nightly-1 "$ridge" compare --db "$tap_dir/made.db" ni
offers latest,bbbb2222 "$ridge" compare --db = "$tap_dir/made.db" latest,bb
offers latest "$ridge" report --db "$tap_dir/made.db" --run la
offers resnet50-2 "$ridge" history -d "$tap_dir/made.db" res
offers box "$ridge" history --db "$tap_dir/made.db" --host ''
run bash "$tap_dir/offer" "$tap_dir/ridge.bash" "$ridge" compare --db "$tap_dir/absent.db" ''
check "no database: nothing is offered and nothing is said" test -z "$(cat "$output" "$errors")"
refuses 'did you mean "points"' ridge help --words pionts

run bash "$tap_dir/offer" "$tap_dir/ridge.bash" ridge plan zzz
check "nothing is offered for a word that fits nothing" test -z "$(cat "$output")"
for command in $commands; do
    offers --help ridge "$command" --he
done
check "bash finds no mistake in it" bash -n "$tap_dir/ridge.bash"

for shell in zsh fish; do
    runs ridge help --completion $shell
    prints 'resnet50'
    cp "$output" "$tap_dir/ridge.$shell"
    if command -v $shell >/dev/null; then
        check "$shell finds no mistake in it" $shell -n "$tap_dir/ridge.$shell"
    fi
done

refuses 'did you mean "bash"' ridge help --completion bsh
prints_nothing

refuses 'needs a value' ridge help --completion

# Every workload has a page, and the numbers of its graph follow it.
missing=""
for name in $("$RIDGE" list workloads --json | jq -r '.[].name'); do
    [ -s "docs/workloads/$name.md" ] || missing="$missing $name"
done
check "pages are missing:${missing:- none}" test -z "$missing"
check "every page has a task" sh -c '! grep -L "Task[.:]" docs/workloads/*.md | grep .'
check "every page names its input" sh -c '! grep -LE "Inputs?[,.: ]" docs/workloads/*.md | grep .'
check "every page says what AI Matrix measured" \
    sh -c '! grep -L "What AI Matrix measured" docs/workloads/*.md | grep .'
runs ridge help resnet50
prints '^# resnet50'
prints '25557032'
prints '`version=1`'

# With parameters: the numbers are those of the model that is meant.
runs ridge help nmt:beam=10
prints '^# nmt'
runs ridge help resnet50:image=32
prints '^\| 1 \| 25557032 \| 0\.0[0-9]* '
run ridge help resnet50:image=2
exits 2
prints_nothing
refuses '"resnet5" is neither a command nor a workload, did you mean "resnet50"' ridge help resnet5
refuses 'did you mean "verify"' ridge help verfy

# The help of both offered "cuda", which both refuse.
for command in train scale; do
    runs ridge help "$command"
    prints '--device NAME +cpu: training runs on no other device as yet$'
    prints '--precision NAME +f32: training is in no other as yet$'
done

refuses 'one word too many' ridge help run plan

finish
