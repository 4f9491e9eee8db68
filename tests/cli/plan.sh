#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plans: suites, overrides, skips, and messages that name the place.
. tests/lib/tap.sh

run ridge plan quick --json
exits 0
holds '.suite == "suites/quick.toml" and .running == (.points | length) and .skipped == 0'
holds 'all(.points[]; (.id | test("^[0-9a-f]{16}$")) and .threads >= 1 and (.protocol.samples_min > 0))'
holds '(.points | map(.id) | unique | length) == (.points | length)'
holds '.sampling_most_s < 120'
holds '.points | map(.workload) | contains(["resnet50", "bert_base", "wide_deep"])'

run ridge plan table1 --json
exits 0
holds '[.points[] | select(.workload == "resnet50")] | map(.batch) | unique == [32]'
run ridge list --json
jq '[.[] | {(.name): .table1_batch}] | add' "$output" >"$tap_dir/batches"
run ridge plan table1 --json
# bert_base goes beside bert_large, which the table has.
check "table1 has the batches of the catalogue" jq -e --slurpfile want "$tap_dir/batches" \
    'all(.points[] | select(.workload != "bert_base"); .batch == $want[0][.workload])' "$output"

run ridge plan
exits 0
prints '^[0-9a-f]{16}  resnet50'
prints 'from suite.toml'
prints 'Sampling takes'

# Without a suite.toml the embedded one is meant.
here=$(pwd)
case $RIDGE in /*) program=$RIDGE ;; *) program=$here/$RIDGE ;; esac
run sh -c "cd '$tap_dir' && '$program' plan"
exits 0
prints 'from suites/quick.toml'

run ridge plan ncf --batch 1,2 --threads 1,100000 --json
exits 2
complains 'ridge: --threads: 100000 is not in 1 to 65536'

run ridge plan ncf --batch 1,2 --threads 1,65536 --json
exits 0
holds '.running == 2 and .skipped == 2 and (.points | length == 4)'
holds '[.points[] | select(.skip)] | all(.skip | test("65536 threads: this process may use"))'

# The same question has the same id, however it is asked.
cat >"$tap_dir/one.toml" <<'END'
[[workload]]
name = "resnet50"
version = 1.5
batch = 4
threads = 1
END
run ridge plan "$tap_dir/one.toml" --json
exits 0
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
run ridge plan ncf --threads 1 --batch 256,8 --db "$tap_dir/past.db" --json
exits 0
holds '.known == 1 and .points[0].estimate_s > 0 and .estimate_s == .points[0].estimate_s'
holds '.points[1].estimate_s == null'
run ridge plan ncf --threads 1 --db "$tap_dir/past.db"
prints '1 of these points was measured before: '
echo "no database" >"$tap_dir/broken.db"
run ridge plan ncf --db "$tap_dir/broken.db" --json
exits 0
holds '.known == 0 and .estimate_s == null'

printf 'include = ["b.toml"]\n' >"$tap_dir/a.toml"
printf '\n\ninclude = ["a.toml"]\n' >"$tap_dir/b.toml"
run ridge plan "$tap_dir/a.toml"
exits 2
complains 'b.toml:3: include: .*a.toml includes itself'

printf '[[workload]]\nname = "ncf"\nbacth = 3\n' >"$tap_dir/typo.toml"
run ridge plan "$tap_dir/typo.toml"
exits 2
complains 'ridge: .*/typo.toml:3: workload.bacth: is no key here, .*; did you mean "batch"[?]'
prints_nothing

printf '[[[a]]]\n' >"$tap_dir/syntax.toml"
run ridge plan "$tap_dir/syntax.toml"
exits 2
complains 'syntax.toml:'

printf '[[workload]]\nname = "ncf\n' >"$tap_dir/open.toml"
run ridge plan "$tap_dir/open.toml"
exits 2
complains 'open.toml:2:'

run ridge plan "$tap_dir"
exits 2
complains 'is a folder, not a regular file'

run ridge plan "$tap_dir/none.toml"
exits 2
complains 'built in: products, quick, table1'

run ridge plan resnt50
exits 2
complains 'did you mean "resnet50"'

run ridge plan quik
exits 2
complains 'did you mean "quick"'

run ridge plan quick --only resnet
exits 2
complains 'did you mean "resnet50"'

# What the documentation says is what the program says.
run ridge help suite.toml --markdown
exits 0
prints '^[|] `samples_min` [|] integer, 1 to'
sed -n '/^## Reference/,$p' docs/suite.md >"$tap_dir/page"
check "docs/suite.md ends in what \`ridge help suite.toml --markdown\` prints" \
    diff "$tap_dir/page" "$output"

run ridge help suite.toml
exits 0
prints '^\[defaults.stop\]'

finish
