#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Verdicts, exit codes and forms of ridge compare on runs that are known to the last sample.
. tests/lib/tap.sh
. tests/lib/made_runs.sh

db=$tap_dir/made.db
made_db "$db"
made_run "$db" 1 aaaa1111-0000 tag=base
made_run "$db" 2 bbbb2222-0000 tag=same
made_run "$db" 3 cccc3333-0000 tag=slow build=b2
made_run "$db" 4 dddd4444-0000 tag=other governor=powersave
made_run "$db" 5 eeee5555-0000 tag=broken
made_run "$db" 6 ffff6666-0000 tag=void verdict=invalid
for run in 1 2 4 6; do
    made_point "$db" $run resnet50 10
    made_point "$db" $run ncf 2
done
made_point "$db" 3 resnet50 12
made_point "$db" 3 ncf 1.6
made_point "$db" 5 resnet50 10 status=wrong
made_point "$db" 5 bert 30

run ridge compare base same --db "$db"
exits 0
prints '^unchanged +resnet50 batch=8 threads=2 +[0-9.]+ ms'
prints 'Environment: no difference'
prints 'same program'
prints '^2 points: 2 unchanged'

run ridge compare base slow --db "$db"
exits 1
prints '^regressed +resnet50 batch=8'
prints '^improved +ncf batch=8'
prints 'program commit +c0ffeeb1 +c0ffeeb2'
prints 'FLOPs equal; other kernels in 1 steps \(conv1: gemm -> gemm_slow\); step conv1 \+1\.6 ms'
check "differences come before verdicts" \
    awk '/program commit/ { seen = NR } /^regressed/ { exit !(seen && seen < NR) }' "$output"

run ridge compare base slow --db "$db" --json
exits 1
holds 'length == 2 and ([.[] | .verdict] | sort) == ["improved", "regressed"]'
holds 'all(.[]; has("point") and has("base_median") and has("head_median") and has("mde"))'
holds '.[0] | .point == "resnet50-2" and (.ratio - 1.2 | fabs) < 0.01 and .ci_low < .ratio and .ratio < .ci_high'
holds '.[0] | (.base_median - 0.010 | fabs) < 1e-4 and .p_adjusted < 0.01 and .base_samples == 60'
holds '.[0].same_program == false and (.[0].differences | map(.what) | index("program commit") != null)'

run ridge compare base other --db "$db"
exits 0
prints '^cpu_state governor +performance +powersave'
check "the governor comes before the verdicts" \
    awk '/governor/ { seen = NR } /^unchanged/ { exit !(seen && seen < NR) }' "$output"

run ridge compare base broken --db "$db"
exits 3
prints '^failed +resnet50'
prints '^missing +ncf'
prints '^new +bert'
run ridge compare base void --db "$db"
exits 4
prints '^invalid +resnet50'
prints 'the governor changed'

# ---- a changed thread count is another point, and is named as the reason ----
made_run "$db" 7 77777777-0000 tag=threads
made_point "$db" 7 resnet50 6 threads=4
made_point "$db" 7 ncf 2
run ridge compare base threads --db "$db"
exits 4
prints '^points differ in +threads=2 +threads=4'
prints '^missing +resnet50 batch=8 threads=2'
prints '^new +resnet50 batch=8 threads=4'

# ---- forms for CI ----
run ridge compare base slow --db "$db" --markdown
exits 1
prints '^### ridge compare: 1 regressed, 1 improved'
prints '^\| regressed \| resnet50 batch=8 threads=2 \|'
prints '^\| program commit \| c0ffeeb1 \| c0ffeeb2 \|'
run ridge compare base slow --db "$db" --junit --output "$tap_dir/junit.xml"
exits 1
prints_nothing
check "JUnit: tests, failures" grep -q 'tests="2" failures="1" errors="0" skipped="0"' "$tap_dir/junit.xml"
check "JUnit: the regression is a failure" grep -q '<failure message="regressed: +' "$tap_dir/junit.xml"
if command -v xmllint >/dev/null; then
    check "JUnit is well-formed XML" xmllint --noout "$tap_dir/junit.xml"
fi
run ridge compare base broken --db "$db" --junit
prints 'errors="2"'

run ridge compare base slow --db "$db" --github
exits 1
prints '^::error title=regressed resnet50 batch=8 threads=2::\+(19|20)\.[0-9] %25, .*; BASE [.0-9]+ ms, HEAD 1[12.0-9]+ ms; '
prints '^::notice title=improved ncf'
prints '^::notice title=ridge compare%3A BASE and HEAD differ::program commit: c0ffeeb1 -> c0ffeeb2$'
prints '^ridge compare: 1 regressed, 1 improved$'
check "GitHub: one command per line, no bare percent sign in it" \
    awk '/^::/ && /%($|[^02][^5AC0-9])/ { exit 1 }' "$output"
run ridge compare base broken --db "$db" --github
prints '^::error title=failed resnet50'
prints '^::warning title=missing ncf'
other=$tap_dir/other.db
made_db "$other"
made_run "$other" 8 88888888-0000 tag=wide
made_run "$other" 9 99999999-0000 tag=narrow
for name in a b c d e f g h i j k l; do
    made_point "$other" 8 "only_$name" 5
done
made_point "$other" 8 ncf 2
made_point "$other" 9 ncf 2
run ridge compare wide narrow --db "$other" --github
exits 4
check "GitHub: no more annotations of a kind than it shows" \
    test "$(grep -c '^::warning' "$output")" = 9
check "two workloads are not one that changed" sh -c '! grep -q "points differ in" "$0"' "$output"
prints '12 missing, 1 unchanged; 3 of them without an annotation'

# ---- rates ----
made_run "$other" 31 31313131-0000 tag=rates
made_run "$other" 32 32323232-0000 tag=lower
for run in 31 32; do
    ms=$((10 + 2 * (run - 31)))
    made_point "$other" $run resnet50 $ms scenario=offline rate=$((8000 / ms))
    made_point "$other" $run ncf 3 scenario=server rate=$((500 - 100 * (run - 31)))
done
run ridge compare rates lower --db "$other"
exits 1
prints '^regressed +resnet50 batch=8 threads=2 offline +[0-9.]+ ms'
prints '^regressed +resnet50 batch=8 threads=2 offline: throughput +800 /s +666 /s +-1[67]\.[0-9] %  -[0-9.]+ \.\. -[0-9.]+ % +-[0-9.]+ %$'
prints '^unchanged +ncf batch=8 threads=2 server: time without queue +[0-9.]+ ms'
prints '^not judged +ncf batch=8 threads=2 server: server rate +500 /s +400 /s +-20\.0 % +- +-$'
prints 'one search per run'
prints '^2 points: 1 regressed, 1 unchanged'
run ridge compare rates lower --db "$other" --json
holds '.[0].rate | .name == "throughput" and .verdict == "regressed" and .better == "higher" and .ratio < 0.85 and .ci_low < .ratio and .ratio < .ci_high'
holds '.[0] | .rate.ratio * .ratio - 1 | fabs < 1e-9'
holds '.[1].rate | .name == "server_rate" and .verdict == "not judged" and (.ratio - 0.8 | fabs) < 1e-9 and .ci_low == null'
run ridge compare rates lower --db "$other" --markdown
prints '^\| not judged \| ncf batch=8 threads=2 server: server rate \| 500 /s \| 400 /s \| -20\.0 % \| - \| - \| one search \|'

# ---- the work ----
made_run "$other" 33 33333333-0000 tag=work
made_run "$other" 34 34343434-0000 tag=more
made_point "$other" 33 resnet50 10 flops=4.1e9 error=1e-7
made_point "$other" 34 resnet50 10 flops=4.3e9 error=1e-7
made_point "$other" 33 ncf 2 flops=123456789 error=1e-7
made_point "$other" 34 ncf 2 flops=123456789
made_point "$other" 33 bert 5 flops=4100000000 error=1e-7
made_point "$other" 34 bert 6 flops=4100010000 error=1e-7
run ridge compare work more --db "$other"
exits 1
prints '^work of resnet50 batch=8 threads=2 +flops 4\.1e9 +flops 4\.3e9$'
prints '^work of ncf batch=8 threads=2 +verification verified +verification not verified$'
prints 'the work changed: flops 4100000000 -> 4100010000'
check "changed work comes before the verdicts" \
    awk '/^work of/ { seen = NR } /^unchanged/ { exit !(seen && seen < NR) }' "$output"
run ridge compare work more --db "$other" --json
holds 'map(select(.point == "resnet50-2"))[0] | .verdict == "unchanged" and .work_changed == "flops 4.1e9 -> 4.3e9" and .work.flops == {"base": 4.1e9, "head": 4.3e9}'
run ridge compare base same --db "$db" --json
holds 'all(.[]; .work_changed == null and .rate == null)'

# ---- words ----
cp "$db" "$tap_dir/copy.db"
sqlite3 "$tap_dir/copy.db" "UPDATE run SET uuid = '9' || uuid"
run ridge compare "$db:base" "$tap_dir/copy.db:slow" --json
exits 1
run ridge compare base,same slow --db "$db" --json
holds 'all(.[]; .base_runs == 2 and .head_runs == 1 and .base_samples == 120)'
run ridge compare base,same,void slow --db "$db"
exits 1
prints '^invalid runs left out: resnet50 batch=8 threads=2 +1 \(the governor changed\) +none'
run ridge compare base,broken slow --db "$db"
exits 4
prints '^invalid +resnet50'
run ridge compare aaaa1111 latest~5 --db "$db"
exits 0
run ridge compare --set-baseline release base --note "1.0" --db "$db"
exits 0
complains 'baseline "release" is run aaaa1111-0000'
run ridge compare release same --db "$db"
exits 0
run ridge compare --set-baseline release base,same --db "$db"
exits 2

# ---- the machine ----
sqlite3 "$db" "UPDATE sample SET context_switches = 1 + 9 * (result IN
    (SELECT id FROM result WHERE run = 3))"
run ridge compare base slow --db "$db"
prints 'FLOPs equal; context switches per s 100 -> 83[0-9]; other kernels'
made_ceiling "$db" 1 100e9
made_ceiling "$db" 3 83e9
run ridge compare base slow --db "$db"
exits 4
prints 'machine.s speed with 2 threads \(ceilings\) +1 +0\.830'
prints 'inconclusive: .*ceilings moved'

sqlite3 "$db" "DELETE FROM ceiling"

# ---- history ----
for run in 11 12 13 14 15 16 17 18 19 20; do
    made_run "$db" $run "9999-$run" "day=$run"
    made_point "$db" $run resnet50 "$(awk -v k=$run 'BEGIN { print 10 + (k * 7 % 5) * 0.4 }')"
done
run ridge compare base slow --db "$db" --json
holds '.[0].noise_from == "history" and .[0].noise > 0.02 and .[0].limit > 0.05'

# ---- usage ----
for words in "base" "base same slow" "base nonsense" "base base" "base, same"; do
    # shellcheck disable=SC2086
    run ridge compare $words --db "$db"
    exits 2
done
complains 'empty word'
run ridge compare base same --db "$tap_dir/absent.db"
exits 2
run ridge compare base same --db "$db" --json --junit
exits 2
run ridge compare base same --db "$db" --limit -1
exits 2
run ridge compare base same --db "$db" --output /no/such/folder/x
exits 2
complains '/no/such/folder/x'

finish
