#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Issue 15.4: a step that takes far longer than on its own trial is named, on the terminal, in JSON
# and on the page. The sample plug-in's kernel is tuned as it is, then made to do its work often.
. tests/lib/tap.sh
RIDGE_PLUGIN_PATH=${RIDGE_BUILD:-$(dirname "$RIDGE")}/tests/plugin_sample
[ -f "$RIDGE_PLUGIN_PATH/sample.so" ] || RIDGE_PLUGIN_PATH=build/release/tests/plugin_sample
export RIDGE_PLUGIN_PATH
db=$tap_dir/steps.db
options="--providers sample,reference --cache $tap_dir/cache --db $db --no-verify --no-ceilings
    --no-report --profilers model --samples 6 --seconds 0.05 --interval 0 --quiet"

run ridge run active:elements=2048 $options
said=$(sqlite3 "$db" "SELECT kernel FROM op")
check "the sample's kernel computes it: $said" [ "$said" = sample_relu ]
trial=$(sqlite3 "$db" "SELECT value > 0 FROM metric WHERE name = 'trial_s' AND op = 0")
check "what it took on trial is kept" [ "$trial" = 1 ]
RIDGE_SAMPLE_REPEAT=5000
export RIDGE_SAMPLE_REPEAT
run ridge run active:elements=2048 $options
prints 'note: 1 step took more than three times what the tuner.s trial took: #0 .*\(Relu\) .* instead of '
run ridge run active:elements=2048 $options --json
holds '.[0].notes | any(test("took more than three times"))'
run ridge report --db "$db" -o "$tap_dir/page"
grep -q 'took more than three times what the tuner' "$tap_dir/page/index.html"
tap_result $? "the page says so"
sums=$(sqlite3 "$db" "SELECT count(*) FROM metric WHERE name IN ('steps_sum_s', 'steps_over_whole') AND value > 0")
check "the sum of the steps and its ratio are kept" [ "$sums" = 6 ]
finish
