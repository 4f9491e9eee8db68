#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ridge history on runs with a known step.
. tests/lib/tap.sh
. tests/lib/made_runs.sh

db=$tap_dir/made.db
made_db "$db"
for run in 1 2 3 4 5 6 7 8 9 10 11 12; do
    made_run "$db" $run "abcd-$run"
    made_point "$db" $run resnet50 "$(awk -v k=$run 'BEGIN { print (k > 7 ? 11 : 10) + k * 7 % 5 * 0.02 }')"
done
made_point "$db" 12 ncf 2
made_point "$db" 12 ncf 2 threads=1
made_run "$db" 13 abcd-13
made_point "$db" 13 resnet50 50 status=wrong

runs ridge history resnet50 --db "$db"
prints '13 runs, 12 good, 1 change of level'
prints 'level 10\.0[0-9] ms -> 11\.0[0-9] ms: \+(9\.[5-9]|10\.[0-5]) %'
prints '^2026-01-08 .* ms +- \|.*o'
prints 'wrong: made wrong valid'
check "the change stands before run 8" \
    awk '/level .* -> / { seen = NR } /^2026-01-08/ { exit NR != seen + 1 }' "$output"

runs ridge history resnet50 --db "$db" --json
holds '.changes | length == 1 and .[0].uuid == "abcd-8" and (.[0].ratio - 1.1 | fabs) < 0.01'
holds '.runs | length == 13 and (.[0].median - 0.010 | fabs) < 0.0002 and .[12].status == "wrong"'
run ridge history resnet50 --db "$db" --last 3
check "only the last runs are drawn" test "$(grep -c '^2026' "$output")" = 3

# Under twelve runs what is there is drawn; only changes of level are not judged. A word for several
# points draws each of them.
runs ridge history ncf --db "$db"
prints '^ncf batch=8 threads=2$'
prints '^ncf batch=8 threads=1$'
check "both are drawn" test "$(grep -c '^2026-01-12 .* ms .*|.*o' "$output")" = 2
refuses '^ncf-1 ' ridge history ncf --db "$db" --json
complains 'name one by its id'
runs ridge history ncf-1 --db "$db"
prints ': 1 run, 1 good, changes of level are not judged'
prints '^2026-01-12 .* ms .*\|.*o'
prints 'Under 12 good runs'
run ridge history ncf-1 --db "$db" --json
holds '.judged == false and (.changes | length == 0) and (.runs | length == 1)'
run ridge history resnet50 --db "$db" --json
holds '.judged == true'
# A label tells points apart that differ in a word which only some have.
sqlite3 "$db" "UPDATE point SET canonical = canonical || ' tuning=quick' WHERE key = 'ncf-1'"
run ridge history ncf --db "$db"
prints '^ncf batch=8 threads=1 tuning=quick$'
few=$tap_dir/few.db
made_db "$few"
for run in 1 2 3 4 5; do
    made_run "$few" $run "few-$run"
    made_point "$few" $run gemm "$((run + 9))"
done
runs ridge history gemm --db "$few"
prints '5 runs, 5 good, changes of level are not judged'
check "five runs are five lines of the chart" test "$(grep -c '^2026-01-0[1-5] .*|.*o' "$output")" = 5
# Three runs and three that take twice the time are so by chance in 1 of 10 orders, and "0 changes of
# level" was said of them. Six and six are judged.
twice=$tap_dir/twice.db
made_db "$twice"
for run in 1 2 3 4 5 6 7 8 9 10 11 12; do
    made_run "$twice" $run "twice-$run"
    made_point "$twice" $run gemm "$(awk -v k=$run 'BEGIN { print (k > 6 ? 20 : 10) + k * 7 % 5 * 0.02 }')"
done
runs ridge history gemm --db "$twice"
prints '12 runs, 12 good, 1 change of level'
sqlite3 "$twice" "DELETE FROM run WHERE id < 4 OR id > 9"
runs ridge history gemm --db "$twice"
prints '6 runs, 6 good, changes of level are not judged'
runs ridge history --db "$db"
prints '^resnet50-2 +13 runs +resnet50 batch=8 threads=2'
run ridge history --db "$db" --json
holds 'length == 3'

# ---- near the roof, where the run measured one ----
for run in 11 12; do
    made_ceiling "$db" $run 200e9
    sqlite3 "$db" "INSERT INTO ceiling (run, device, kind, name, level, precision, isa, pattern, threads,
            value, unit, reason, how, n) VALUES ($run, 'cpu', 'bandwidth', 'triad DRAM', 'DRAM', '', 'avx2',
            'triad', 2, 20e9, 'B/s', '', 'measured', 5);
        INSERT INTO metric (result, name, unit, source, better, value, reason, formula, n)
            SELECT id, 'bytes_compulsory', 'B', 'model', 'lower', 1e8, '', '', 0 FROM result WHERE run = $run"
done
# 1e9 FLOP at 200 GFLOP/s and 1e8 B at 20 GB/s are 5 ms each, of 11 ms.
run ridge history resnet50 --db "$db"
prints '^2026-01-11 .* ms  45 % \|'
prints '^2026-01-10 .* ms +- \|'
run ridge history resnet50 --db "$db" --json
holds '.runs[10] | (.fraction_of_roof - 5/11 | fabs) < 0.01 and .bound == "latency"'
holds '.runs[9] | .fraction_of_roof == null'

# ---- two machines are kept apart ----
for run in 21 22 23; do
    made_run "$db" $run "efef-$run" host=second
    made_point "$db" $run resnet50 30
done
runs ridge history resnet50 --db "$db"
complains 'runs of second only; --host shows those of 1 other machine'
prints 'on second: 3 runs, 3 good'
run ridge history resnet50 --db "$db" --host box --json
holds '.host == "box" and (.runs | length == 13)'
run ridge history --db "$db"
prints '^resnet50-2 +16 runs on +2 machines +resnet50'
prints '^ncf-1 +1 runs on +1 machine +ncf'

refuses 'no point "nothing"' ridge history nothing --db "$db"
run ridge history resnet50 --host elsewhere --db "$db"
exits 2
run ridge history resnet50 --db "$tap_dir/absent.db"
exits 2
run ridge history a b --db "$db"
exits 2
finish
