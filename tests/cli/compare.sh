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

runs ridge compare base same --db "$db"
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

runs ridge compare base other --db "$db"
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
# Names and reasons that are longer than their place end between letters, whatever their script.
script=$tap_dir/script.db
cp "$db" "$script"
long=$(printf '%400s' '' | sed 's/ /\xe5\x8d\xb7/g')
sqlite3 "$script" "UPDATE result SET reason = reason || '$long' WHERE status = 'wrong';
    UPDATE point SET params = 'xy' || '$long' WHERE key = 'ncf-2'; UPDATE run SET tag = '$long' WHERE tag = 'same';
    UPDATE env_fact SET value = 'x' || '$long' WHERE key = 'governor' AND value = 'powersave'"
for form in '' --markdown --junit --github --json; do
    # shellcheck disable=SC2086 # no form is no word
    run ridge compare base,slow broken,other --db "$script" $form
    check "compare $form is UTF-8" iconv -f utf-8 -t utf-8 -o /dev/null "$output"
done
run ridge history resnet50 --db "$script"
check "history is UTF-8" iconv -f utf-8 -t utf-8 -o /dev/null "$output"
run ridge compare base broken --db "$db" --github
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

# A run that counts twice would make its side look more certain than it is.
cp "$db" "$tap_dir/copy.db"
refuses 'are the same run' ridge compare base,base same --db "$db"
refuses 'are the same run' ridge compare "base,$tap_dir/copy.db:base" same --db "$db"

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
runs ridge compare aaaa1111 latest~5 --db "$db"
runs ridge compare --set-baseline release base --note "1.0" --db "$db"
complains 'baseline "release" is run aaaa1111-0000'
runs ridge compare release same --db "$db"
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
prints '^machine +resnet50'
prints 'machine: .*ceilings moved'

sqlite3 "$db" "DELETE FROM ceiling"

# ---- history ----
for run in 11 12 13 14 15 16 17 18 19 20; do
    made_run "$db" $run "9999-$run" "day=$run"
    made_point "$db" $run resnet50 "$(awk -v k=$run 'BEGIN { print 10 + (k * 7 % 5) * 0.4 }')"
done
made_run "$db" 21 "9999-21" tag=slower build=b2 day=21
made_point "$db" 21 resnet50 12
run ridge compare base slower --db "$db" --json
holds '.[0] | (.noise_from | test("history")) and .noise > 0.02 and .limit > 0.04 and .history_runs >= 10'
# Runs in another environment are no history, and those of another program do not stand for BASE.
sqlite3 "$db" "UPDATE run SET env_set = (SELECT env_set FROM run WHERE tag = 'other')
    WHERE id BETWEEN 11 AND 20"
run ridge compare base slower --db "$db" --json
holds '.[0].history_runs < 10'
sqlite3 "$db" "UPDATE run SET env_set = (SELECT env_set FROM run WHERE tag = 'base'),
    build = (SELECT id FROM build WHERE uid = 'b2') WHERE id BETWEEN 11 AND 20"
run ridge compare base slower --db "$db" --json
holds '.[0] | .history_runs < 10 and (.noise_from | test("history"))'

# ---- around the runs: figures of both sides, also where the facts agree ----
around=$tap_dir/around.db
made_db "$around"
for run in 1 2 3 4; do
    made_run "$around" $run "aaaa000$run-0000" "tag=r$run"
    for phase in before after; do
        sqlite3 "$around" "INSERT INTO run_fact VALUES ($run, '$phase', 'kernel', 'load', '$run.50 0.5 0.5 1/2 3', '',
            '/proc/loadavg', 'ok')"
    done
done
made_point "$around" 1 ncf 9.5 hand_over=8
made_point "$around" 2 ncf 21.6 hand_over=18.2
for run in 1 3; do
    made_point "$around" $run active $((7 * run)) hand_over=8
done
for run in 1 4; do
    made_point "$around" $run norm $((7 * run)) visits=1
done
run ridge compare r1 r2 --db "$around"
exits 4
prints '^Around the runs +BASE +HEAD'
prints '^load average \(1 min\) +1\.50 before, 1\.50 after +2\.50 before, 2\.50 after'
prints '^CPU time taken by other virtual machines +0\.1 % +0\.1 %'
prints '^CPU time waited for other programs +0\.2 % +0\.2 %'
prints '^handing work to threads +8\.08 us +18\.4 us'
prints '^reading memory +not known +not known'
check "the figures come before \"no difference\"" \
    awk '/^Around/ { seen = NR } /^Environment: no diff/ { exit !(seen && seen < NR) }' "$output"
prints '^machine +ncf'
prints 'machine: \+127 %, but handing work to threads took 2\.3 times as long beside these visits'
prints '^3 points: 2 missing, 1 machine'
run ridge compare r1 r2 --db "$around" --json
exits 4
holds 'map(select(.label | test("ncf"))) | .[0] | .verdict == "machine" and .explained_by == "hand_over" and (.levels.hand_over - 2.275 | fabs) < 0.06 and .levels.dram_read == null'
holds 'map(select(.label | test("ncf"))) | .[0] | (.base_visits | length) == 3 and (.base_visits[2] | .round == 2 and .samples == 20 and (.median_s - 0.0095 | fabs) < 1e-4 and (.hand_over - 8.16e-6 | fabs) < 1e-9)'
holds 'map(select(.label | test("ncf"))) | .[0] | (.around | map(.what) | index("clock") != null) and .noise > 0 and .noise_df > 0 and .in_turns == false'
run ridge compare r1 r2 --db "$around" --junit
exits 4
prints 'failures="0" errors="2" skipped="1"'
prints '<skipped message="machine: '
prints 'property name="around: load average'
run ridge compare r1 r2 --db "$around" --markdown
prints '^\| machine \| ncf'
prints '^\| around the runs \| BASE \| HEAD \|'
run ridge compare r1 r2 --db "$around" --github
prints '^::warning title=machine ncf'
prints '^::notice title=ridge compare%3A around the runs::load average'
run ridge compare r1 r3 --db "$around"
exits 1
prints '^regressed +active'

# ---- a verdict does not change with later runs; earlier ones of BASE's program stand for it ----
made_point "$around" 4 active 21 hand_over=8
run ridge compare r1 r3 --db "$around"
exits 1
run ridge compare r1 r4 --db "$around"
prints '^inconclusive +active .* +12\.[0-9]+ ms +2[01][.0-9]* ms'
prints '^BASE counts with 1 earlier run of its program here'

# ---- one visit a side, as in databases of before: no alarm ----
made_run "$around" 5 "aaaa0005-0000" tag=r5 build=b5
made_run "$around" 6 "aaaa0006-0000" tag=r6 build=b6
made_point "$around" 5 gcn 10 visits=1
made_point "$around" 6 gcn 20.9 visits=1
run ridge compare r5 r6 --db "$around"
exits 4
prints 'inconclusive: \+10[89]\.[0-9] %, but one visit per side .*measure in turns \(ridge run SUITE --against PROGRAM\)'

# ---- what is invalid was disturbed: its figures stand there as well ----
made_run "$around" 9 "aaaa0009-0000" tag=r9
made_point "$around" 9 ncf 9.5 verdict=invalid hand_over=30
run ridge compare r1 r9 --db "$around"
exits 4
prints '^CPU time waited for other programs +0\.2 % +0\.2 %'
prints '^handing work to threads +8\.08 us +30\.3 us'

# ---- in turns: visit beside visit, whatever the machine did between them ----
made_run "$around" 7 "aaaa0007-0000" tag=r7
made_run "$around" 8 "aaaa0008-0000" tag=r8 build=b8
made_point "$around" 7 din 10 seed=1
made_point "$around" 8 din 10.6 seed=2
sqlite3 "$around" "UPDATE sample SET time_ns = time_ns * (1 + visit) WHERE result IN
    (SELECT id FROM result WHERE run IN (7, 8))"
run ridge compare r7 r8 --db "$around"
exits 4
prints '^inconclusive +din'
made_turns "$around" aaaa0007-0000 aaaa0008-0000
run ridge compare r7 r8 --db "$around" --json
exits 1
holds '.[0] | .verdict == "regressed" and .in_turns and (.ratio - 1.06 | fabs) < 0.01 and (.noise_from | test("pairs"))'
runs ridge compare r8 r7 --db "$around"
prints '^improved +din'

# ---- usage ----
for words in "base" "base same slow" "base nonsense" "base base" "base, same"; do
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
refuses '/no/such/folder/x' ridge compare base same --db "$db" --output /no/such/folder/x

finish
