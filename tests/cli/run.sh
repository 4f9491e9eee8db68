#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Small runs of the commands that compile a model.
. tests/lib/tap.sh
# 4: the machine was disturbed, which is the machine's fault.
ran() {
    [ "$code" = 0 ] || [ "$code" = 4 ]
    tap_result $? "$tap_what: exit code 0 or 4"
}
quick="--seconds 0.05 --samples 5 --interval 0 --no-db"

run ridge run ncf wide_deep $quick --quick-tune --json
ran
holds 'length == 2 and .[0].workload == "ncf" and .[1].workload == "wide_deep"'
holds 'all(.[]; .median_ms > 0 and .min_ms <= .median_ms and .median_ms <= .p90_ms and .samples >= 5)'
holds 'all(.[]; .status == "ok" or .status == "invalid")'
holds 'all(.[]; .max_rel_error < 1e-5 and .ci_low_ms <= .median_ms and .median_ms <= .ci_high_ms)'
holds 'all(.[]; .peak_fraction > 0 and .peak_fraction < 2)'

run ridge run ncf $quick --no-ceilings --batch 8 --threads 1
ran
prints '^ncf +8 +1 '

runs ridge verify ncf wide_deep
prints '^ncf .* ok'

runs ridge verify ncf --providers native --isa scalar --no-fuse --no-tune --json
check "verify prints JSON" jq -e . "$output"

# Those whose shapes say the batch fail: they are reported, and the others have their turn.
run ridge verify --all --domain micro --batch 2 --no-tune --json
exits 3
complains '\[ 1/7\] active'
holds 'length == 7 and all(.[]; .status == "failed" or .bound >= 1e-5)'
holds 'all(.[] | select(.status == "failed"); .reason | test("batch"))'
holds 'map(select(.workload == "pool" or .workload == "rnn").status) == ["failed", "ok"]'
runs ridge verify dien din ncf wide_deep dlrm_dcnv2:rows=1000 --batch 2 --no-tune --no-fuse --threads 2
runs ridge verify gcn --no-tune --no-fuse --threads 2
prints '^gcn .* ok'
refuses '"nosuch" is not known' ridge verify nosuch
check "nothing that was not measured is printed" sh -c '! grep -q nan "$0"' "$output"
prints '^nosuch +cpu f32  failed$'
refuses 'no_such_domain' ridge verify --all --domain no_such_domain
for words in '--all ncf' '--domain micro'; do
    refuses 'usage: ridge' ridge verify $words
done

runs ridge explain ncf --json
check "explain prints JSON" jq -e 'all(.[]; .kernel)' "$output"

runs ridge explain ncf --all
prints '\*'

for command in verify explain; do
    refuses 'usage: ridge' ridge "$command"
done
for command in run verify explain; do
    refuses 'did you mean "resnet50"' ridge "$command" resnt50
    refuses 'no_such_isa' ridge "$command" ncf --isa no_such_isa
    run ridge "$command" ncf --batch x
    exits 2
done

# An option without effect is refused: it would be ignored silently.
refuses '\-\-resume goes on with a stored run, and --no-db stores none' ridge run ncf --resume --no-db
refuses '\-\-tag names a stored run, and --no-db stores none' ridge run ncf --tag x --no-db
refuses '\-\-db says where results go, and --no-db stores none' ridge run ncf --db x.db --no-db
refuses '\-\-report shows a stored run, and --no-db stores none' ridge run ncf --report x --no-db
for command in run plan; do
    refuses '\-\-report says where the report goes, and --no-report writes none' \
        ridge $command ncf --report x --no-report
    refuses '\-\-no-winograd is the same as --max-error 1e-5, and --max-error says 0.001' \
        ridge $command ncf --no-winograd --max-error 1e-3
    refuses '\-\-retune times all kernels, and --no-tune none' ridge $command ncf --retune --no-tune
    for option in --samples --seconds-max; do # 0 was taken for the default without a word
        refuses "$option needs a (value from 1 to 1000000000|number above 0), got \"0\"" \
            ridge $command ncf $option 0
    done
done
refuses '\-\-repeat belongs to --interleave' ridge run ncf --repeat 2 --no-db
for command in run plan; do
    refuses '\-\-segments belongs to --recompute' ridge $command ncf --mode training --segments 2
    refuses '\-\-latency-bound belongs to --scenario server' ridge $command ncf --latency-bound 0.1
    refuses '\-\-quantile belongs to --scenario server' ridge $command ncf --quantile 0.9 --scenario offline
done
runs ridge plan ncf --scenario single_stream,server --latency-bound 0.1 --quantile 0.9

# Nothing that is not stored can be gone on with.
"$RIDGE" run ncf --device null --no-db --rounds 50 --samples 1000000 --seconds-max 1000000 --no-verify >"$output" 2>"$errors" &
victim=$!
sleep 1
kill -s TERM $victim
wait $victim
code=$?
tap_what="a run that stores nothing, interrupted"
complains 'interrupted, and nothing of it is kept'
check "nothing is said of --resume" sh -c '! grep -q resume "$0"' "$errors"

# A tag by which no run could be found is refused; so is a baseline.
for tag in latest 'latest~1' 'a,b' x.db x.db:y; do
    refuses 'by this word a run could not be found. Allowed is any text without a comma' \
        ridge run ncf --device null --tag "$tag" --db "$tap_dir/tag.db"
    refuses 'set-baseline .*: by this word a run could not be found' ridge compare latest --set-baseline "$tag" --db "$tap_dir/tag.db"
done
check "nothing was stored" test ! -e "$tap_dir/tag.db"
runs ridge run ncf --device null --no-verify --no-report --no-ceilings --tag 'latest news' --db "$tap_dir/tag.db"

# A file may have any name: its row is one line, which a terminal does not obey.
odd=$(printf '%s/a\nb\033[31m.onnx' "$tap_dir")
runs ridge export ncf --batch 4 --output "$odd"
runs ridge run "$odd" --device null --no-ceilings --no-report --no-verify --db "$tap_dir/odd.db"
is "the row of an odd name is one line" 2 "$(wc -l <"$output")"
check "and nothing in it is obeyed" sh -c '! grep -q "$(printf "\033")" "$0"' "$output"
runs ridge history --db "$tap_dir/odd.db"
is "nor do more lines come of it in the history" 1 "$(wc -l <"$output")"
finish
