#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a run leaves behind, on the null device: nothing is computed, time follows a script.
. tests/lib/tap.sh
db=$tap_dir/ridge.db
script=$tap_dir/script
fast="--device null --no-ceilings --no-report"
export RIDGE_NULL_SCRIPT="$script"

# Ten samples of 1 ms, then ten of 3 ms and again: median 2 ms.
{ yes 1000000 | head -10; yes 3000000 | head -10; } >"$script"
run ridge run ncf --batch 1 $fast --db "$db" --samples 20 --seconds 0.02 --interval 0 --rounds 1 --json
exits 4 # no median can be trusted between two modes
holds '.[0].samples == 20 and .[0].status == "invalid"'
holds '.[0].median_ms == 2 and .[0].min_ms == 1'
holds '.[0].reason | test("unstable")'
is "samples are kept" 20 "$(sql "SELECT count(*) FROM sample WHERE phase = 'time'")"
is "so is warm-up" 1 "$(sql "SELECT count(*) > 0 FROM sample WHERE phase = 'warmup'")"
is "a raw sample" 1000000 "$(sql "SELECT min(time_ns) FROM sample")"

echo 1000000 >"$script"
runs ridge run ncf wide_deep --batch 1,2 $fast --db "$db" --tag second --profilers model
prints '^ncf +2 '
is "points" 4 "$(sql "SELECT count(*) FROM result WHERE run = 2 AND status = 'ok'")"
is "the command as it was typed" 1 \
    "$(sql "SELECT command LIKE 'ridge run ncf wide_deep --batch 1,2 % --tag second %' FROM run WHERE id = 2")"
is "tag" second "$(sql 'SELECT tag FROM run WHERE id = 2')"
is "state" finished "$(sql 'SELECT state FROM run WHERE id = 2')"
is "the environment is shared" 1 "$(sql 'SELECT count(DISTINCT env_set) FROM run')"
is "model FLOPs of each point" 4 \
    "$(sql "SELECT count(*) FROM metric m JOIN result r ON r.id = m.result
            WHERE m.name = 'flops' AND m.source = 'model' AND m.op IS NULL AND r.run = 2")"
is "no value without a reason" 0 "$(sql "SELECT count(*) FROM metric WHERE value IS NULL AND reason = ''")"
is "the command that repeats it" 1 \
    "$(sql "SELECT reproduce LIKE 'ridge run ncf --batch 1 %' FROM result WHERE run = 2 LIMIT 1")"

# What is unusual about a point is named in its row and in its command, which makes the same point.
run ridge run ncf --batch 1 --scenario offline,server --latency-bound 0.5 --quantile 0.9 $fast \
    --no-verify --db "$tap_dir/again.db"
prints '^ncf offline +1 '
prints '^ncf server +1 '
sql 'SELECT reproduce FROM result' "$tap_dir/again.db" >"$tap_dir/lines"
while read -r _ words; do
    "$RIDGE" $words $fast --no-verify --db "$tap_dir/again.db" >/dev/null 2>&1
done <"$tap_dir/lines"
is "the commands make no other points" "2 2" \
    "$(sql "SELECT count(*) || ' ' || min(n) FROM (SELECT count(*) AS n FROM result GROUP BY point)" "$tap_dir/again.db")"

# Without a warm-up nothing was timed before the first rate of queries: the wait for the first query had no end.
printf '[[workload]]\nname = "ncf"\nbatch = 1\nscenario = "server"\nserver = { latency_bound_s = 0.5, queries = 20 }\nstop = { warmup_runs = 0, warmup_s = 0 }\n' >"$tap_dir/cold.toml"
run timeout 120 "$RIDGE" run "$tap_dir/cold.toml" --no-ceilings --rounds 1 --no-verify --no-tune --no-db
check "a server that is not warmed up ends" [ "$code" = 0 -o "$code" = 4 ]

# A point that fails is a row with its reason; the others run.
printf 'not a model' >"$tap_dir/bad.onnx"
run ridge run "$tap_dir/bad.onnx" ncf --batch 1 $fast --db "$db"
exits 3
is "failed and ok" "failed,ok" \
    "$(sql 'SELECT group_concat(status) FROM (SELECT status FROM result WHERE run = 3 ORDER BY sequence)')"
is "the reason names the file" 1 \
    "$(sql "SELECT reason LIKE '%bad.onnx%' FROM result WHERE run = 3 AND status = 'failed'")"

# Nothing that was typed names a person's folder after --redact.
mkdir -p "$tap_dir/person/suites"
printf '# %s/person/notes\n[[workload]]\nname = "ncf"\nbatch = 1\n' "$tap_dir" >"$tap_dir/person/suites/s.toml"
runs env HOME="$tap_dir/person" "$RIDGE" run "$tap_dir/person/suites/s.toml" $fast --redact --db "$tap_dir/redacted.db"
is "redacted: command, suite and its text" "1|<home>/suites/s.toml|1" \
    "$(sql "SELECT instr(command, 'ridge run <home>/suites/s.toml') > 0, suite,
        instr(suite_text, '# <home>/notes' || char(10)) > 0 FROM run" "$tap_dir/redacted.db")"

# Unfinished runs go on, and no point is measured twice.
sql "UPDATE run SET state = 'running', ended_utc = NULL WHERE id = 2;
     DELETE FROM result WHERE run = 2 AND sequence IN (1, 3)"
runs ridge run ncf wide_deep --batch 1,2 $fast --db "$db" --profilers model --resume
complains '2 of 4 points were there already'
is "resumed into the same run" "0,1,2,3" \
    "$(sql 'SELECT group_concat(sequence) FROM (SELECT sequence FROM result WHERE run = 2 ORDER BY sequence)')"
is "no other run" 3 "$(sql 'SELECT count(*) FROM run')"

# A database that cannot be written costs no result.
printf 'garbage, not a database' >"$tap_dir/garbage.db"
refuses 'garbage.db' ridge run ncf --batch 1 $fast --db "$tap_dir/garbage.db"
is "and is not touched" "garbage, not a database" "$(cat "$tap_dir/garbage.db")"

prints_nothing
# A file that may not grow: an error, no death, and what was stored before is whole. Only with
# this limit under the shell's own, so in a shell of its own.
cp "$db" "$tap_dir/limited.db"
before=$(sql 'SELECT count(*) FROM result' "$tap_dir/limited.db")
# shellcheck disable=SC2016
run sh -c 'ulimit -f $(($(wc -c <"$1") / 512 + 64)) && exec "$0" run ncf --batch 1,2 --device null --no-ceilings \
    --no-report --no-verify --samples 9000 --db "$1"' "$RIDGE" "$tap_dir/limited.db"
check "a file at its limit ends with a message" test "$code" -lt 64 -a -s "$errors"
complains 'limited.db'
is "the database is whole" ok "$(sql 'PRAGMA integrity_check' "$tap_dir/limited.db")"
check "with all that it had" test "$(sql 'SELECT count(*) FROM result' "$tap_dir/limited.db")" -ge "$before"

# Scripts that are no scripts.
echo nonsense >"$script"
run ridge run ncf --batch 1 $fast --db "$db"
exits 3
prints 'nonsense.*is no number of nanoseconds'

refuses 'takes two programs' ridge run --interleave "$RIDGE" "$RIDGE"
refuses '^ridge: --scenario has no meaning with --interleave' \
    ridge run --interleave "$RIDGE" "$RIDGE" ncf --scenario offline
prints_nothing

# Two programs in turns: what they are asked for, and as many samples as were wanted.
printf '#!/bin/sh\necho "$@" >>"%s/asked"\necho ready\nwhile read -r _; do echo 10.0; echo . >>"%s/samples"; done\n' \
    "$tap_dir" "$tap_dir" >"$tap_dir/program"
chmod +x "$tap_dir/program"
runs ridge run --interleave "$tap_dir/program" "$tap_dir/program" ncf --repeat 2 --samples 7 \
    --seconds 0.01 --isa avx2 --no-winograd --threads 1 --json
holds 'length == 1 and .[0].verdict == "unchanged" and .[0].pairs == 2'
is "both programs, two pairs" 4 "$(wc -l <"$tap_dir/asked")"
is "the same question" "run ncf --on-request --threads 1 --isa avx2 --no-winograd" "$(sort -u "$tap_dir/asked")"
check "not many more samples than asked for" test "$(wc -l <"$tap_dir/samples")" -ge 40

finish
