#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plans: suites, overrides, skips, and messages that name the place.
. tests/lib/tap.sh

runs ridge plan quick --json
holds '.suite == "suites/quick.toml" and .running == (.points | length) and .skipped == 0'
holds 'all(.points[]; (.id | test("^[0-9a-f]{16}$")) and .threads >= 1 and (.protocol.samples_min > 0))'
holds '(.points | map(.id) | unique | length) == (.points | length)'
holds '.sampling_most_s < 120'
holds '.points | map(.workload) | contains(["resnet50", "bert_base", "wide_deep"])'

runs ridge plan table1 --json
holds '[.points[] | select(.workload == "resnet50")] | map(.batch) | unique == [32]'
run ridge list --json
jq '[.[] | {(.name): .table1_batch}] | add' "$output" >"$tap_dir/batches"
run ridge plan table1 --json
# bert_base goes beside bert_large, which the table has.
check "table1 has the batches of the catalogue" jq -e --slurpfile want "$tap_dir/batches" \
    'all(.points[] | select(.workload != "bert_base"); .batch == $want[0][.workload])' "$output"

runs ridge plan
prints '^[0-9a-f]{16}  resnet50'
prints 'from suite.toml'
prints 'Sampling takes'

# Without a suite.toml the embedded one is meant.
here=$(pwd)
case $RIDGE in /*) program=$RIDGE ;; *) program=$here/$RIDGE ;; esac
runs sh -c "cd '$tap_dir' && '$program' plan"
prints 'from suites/quick.toml'

refuses 'ridge: --threads: 100000 is not in 1 to 65536' ridge plan ncf --batch 1,2 --threads 1,100000 --json

runs ridge plan ncf --batch 1,2 --threads 1,65536 --json
holds '.running == 2 and .skipped == 2 and (.points | length == 4)'
holds '[.points[] | select(.skip)] | all(.skip | test("65536 threads: this process may use"))'

# Bug: `ridge run table1 --batch 2` failed in gcn, whose shapes say the batch, after all else had been measured.
runs ridge plan gcn gemm ncf --batch 1,2 --json
holds '.running == 4 and .skipped == 2'
holds '[.points[] | select(.skip) | .skip] | sort == ["batch 2: the shapes of gcn say the batch already, so it must be 1",
    "batch 2: the shapes of gemm say the batch already, so it must be 1"]'
refuses 'ridge: batch 3: the shapes of gemm say the batch already' ridge graph gemm --batch 3

# The same question has the same id, however it is asked.
cat >"$tap_dir/one.toml" <<'END'
[[workload]]
name = "resnet50"
version = 1.5
batch = 4
threads = 1
END
runs ridge plan "$tap_dir/one.toml" --json
jq -r '.points[0].id' "$output" >"$tap_dir/file"
run ridge plan resnet50:version=1.5 --batch 4 --threads 1 --samples 99 --json
jq -r '.points[0].id' "$output" >"$tap_dir/words"
check "a file and words that ask the same have the same id" cmp "$tap_dir/file" "$tap_dir/words"
run ridge plan resnet50:version=1.5 --batch 4 --threads 1 --cold --json
jq -r '.points[0].id' "$output" >"$tap_dir/cold"
check "a cold cache is another question" sh -c "! cmp -s '$tap_dir/file' '$tap_dir/cold'"

cat >"$tap_dir/sweep.toml" <<'END'
include = ["one.toml"]
[[workload]]
name = ["ncf", "wide_deep"]
batch = { from = 1, to = 8, times = 2 }
scenario = ["single_stream", "offline"]
END
run ridge plan "$tap_dir/sweep.toml" --json
holds '.points | length == 17'
holds '.points[0].workload == "resnet50"'
run ridge plan "$tap_dir/sweep.toml" --only ncf --json
holds '.points | length == 8'

# What a point took before is what it is expected to take.
run ridge run ncf --threads 1 --samples 3 --seconds 0.01 --seconds-max 0.1 --no-ceilings --no-report \
    --db "$tap_dir/past.db" # on a busy machine the result is invalid: what counts here is its time
runs ridge plan ncf --threads 1 --batch 256,8 --db "$tap_dir/past.db" --json
holds '.known == 1 and .points[0].estimate_s > 0 and .estimate_s == .points[0].estimate_s'
holds '.points[1].estimate_s == null'
run ridge plan ncf --threads 1 --db "$tap_dir/past.db"
prints '1 of these points was measured before: '
echo "no database" >"$tap_dir/broken.db"
runs ridge plan ncf --db "$tap_dir/broken.db" --json
holds '.known == 0 and .estimate_s == null'

printf 'include = ["b.toml"]\n' >"$tap_dir/a.toml"
printf '\n\ninclude = ["a.toml"]\n' >"$tap_dir/b.toml"
refuses 'b.toml:3: include: .*a.toml includes itself' ridge plan "$tap_dir/a.toml"

printf '[[workload]]\nname = "ncf"\nbacth = 3\n' >"$tap_dir/typo.toml"
refuses 'ridge: .*/typo.toml:3: workload.bacth: is no key here, .*; did you mean "batch"[?]' \
    ridge plan "$tap_dir/typo.toml"
prints_nothing

printf '[[[a]]]\n' >"$tap_dir/syntax.toml"
refuses 'syntax.toml:' ridge plan "$tap_dir/syntax.toml"

printf '[[workload]]\nname = "ncf\n' >"$tap_dir/open.toml"
refuses 'open.toml:2:' ridge plan "$tap_dir/open.toml"

refuses 'is a folder, not a regular file' ridge plan "$tap_dir"

suites=$(echo suites/*.toml | sed 's|suites/||g; s|\.toml||g; s| |, |g')
refuses "built in: $suites\$" ridge plan "$tap_dir/none.toml"

refuses 'did you mean "resnet50"' ridge plan resnt50

refuses 'did you mean "quick"' ridge plan quik

refuses 'did you mean "resnet50"' ridge plan quick --only resnet

# What the documentation says is what the program says.
runs ridge help suite.toml --markdown
prints '^[|] `samples_min` [|] integer, 1 to'
sed -n '/^## Reference/,$p' docs/suite.md >"$tap_dir/page"
check "docs/suite.md ends in what \`ridge help suite.toml --markdown\` prints" \
    diff "$tap_dir/page" "$output"

runs ridge help suite.toml
prints '^\[defaults.stop\]'

finish
