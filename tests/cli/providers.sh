#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names of providers: unknown ones are refused everywhere; what falls to the reference is said.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}
quick="--seconds 0.02 --samples 3 --interval 0 --quiet --no-ceilings --no-report"

# Each of these once computed ncf with the reference and called it ok.
for command in run plan explain verify infer 'run --on-request'; do
    refuses 'provider "bogus" is not known.*native, reference, .*onednn' ridge $command ncf --providers bogus
done
refuses 'provider "bogus" is not known' ridge run --interleave "$RIDGE" "$RIDGE" ncf --providers bogus
refuses 'provider "nativ" is not known, did you mean "native"' ridge plan ncf --providers native,nativ
refuses 'names no provider' ridge explain ncf --providers ' , '

suite=$tap_dir/suite.toml
printf '[[workload]]\nname = "ncf"\nproviders = ["native", "opneblas"]\n' >"$suite"
refuses 'suite.toml:3: workload.providers: provider "opneblas" is not known, did you mean "openblas"' \
    ridge plan "$suite"
printf '[defaults]\nproviders = "bogus"\n[[workload]]\nname = "ncf"\n' >"$suite"
refuses 'suite.toml:2: defaults.providers: provider "bogus" is not known' ridge run "$suite"

# Known, but left out of this build: the point is skipped with the reason, and the exit code is 5.
absent=$(sed -n 's/^ABSENT("\([a-z]*\)".*/\1/p' "$build/gen/absent_plugins.inc" |
    while read -r name; do [ -d "engine/kernels/$name" ] && echo "$name"; done | head -1)
if [ -n "$absent" ]; then
    run ridge run ncf $quick --no-db --providers "$absent"
    exits 5
    prints "skipped: provider \"$absent\" is not in this build: "
    run ridge explain ncf --providers "native,$absent"
    exits 5
    complains "provider \"$absent\" is not in this build: "
fi

# A plug-in that cannot be opened.
mkdir "$tap_dir/plugins"
echo "no library" >"$tap_dir/plugins/broken.so"
RIDGE_PLUGIN_PATH=$tap_dir/plugins run ridge explain ncf --providers broken
exits 5
complains 'provider "broken" cannot be used here: '

# Steps on the reference: in the row, in the database, on the page, and as exit code 3.
check "the model is written" "$build/tests/unit/test_onnx_semantics" --write "$tap_dir"
db=$tap_dir/r.db
run ridge run "$tap_dir/det.onnx" $quick --db "$db"
exits 3
prints 'note: 1 of 2 steps with [0-9.]+ % of their time ran on the reference kernel \(Det\)'
complains '1 point took 1 % or more of the time in steps on the reference kernel'
check "the database counts them" test "$(sqlite3 "$db" \
    "SELECT group_concat(value > 0) FROM metric WHERE name IN ('reference_steps', 'reference_time_share')")" = 1,1
run ridge report latest --db "$db" -o "$tap_dir/page"
check "the page says so" grep -q '1 of [0-9]* steps with [0-9.]* % of their time ran on the reference kernel (Det)' "$tap_dir/page/index.html"
run ridge run "$tap_dir/det.onnx" $quick --no-db --json
exits 3
holds '.[0].reference_steps == 1 and .[0].reference_time_share > 0 and (.[0].notes | any(test("Det")))'
run ridge run "$tap_dir/det.onnx" $quick --no-db --no-layers
exits 3
prints 'note: 1 of 2 steps ran on the reference kernel'
# Asked for, it is no failure (4: a disturbed machine).
run ridge run "$tap_dir/det.onnx" $quick --no-db --providers native,reference
[ "$code" = 0 ] || [ "$code" = 4 ]
tap_result $? "$tap_what: exit code 0 or 4"
run ridge run ncf $quick --no-tune --no-db --providers native --json
holds '.[0].reference_steps == 0 and .[0].reference_time_share == 0 and (.[0].notes | any(test("reference kernel")) | not)'
finish
