#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ridge run --against PROGRAM, and baselines that keep their program. Most of it on the null device and
# with shell scripts as the other program, so that times are exact; some with real kernels.
. tests/lib/tap.sh
. tests/lib/processes.sh
db=$tap_dir/r.db
export RIDGE_NULL_SCRIPT="$tap_dir/script" RIDGE_CACHE="$tap_dir/tuner.txt"

# A program of before: it knows the protocol and not its uid. A sample is what $tap_dir/ms says.
cat >"$tap_dir/older" <<END2
#!/bin/sh
echo "\$@" >>"$tap_dir/asked"
[ "\$1" != version ] || { echo '{"version": "0.0.1", "commit": "0ld", "config": "release", "compiler": "cc"}'; exit; }
echo ready
while read -r line; do
    echo "line \$line" >>"$tap_dir/lines"
    cat "$tap_dir/ms"
done
END2
chmod +x "$tap_dir/older"
echo 10.0 >"$tap_dir/ms"
echo 10000000 >"$tap_dir/script"

# ---- equal sides ----
runs ridge run ncf wide_deep --device null --threads 1 --against "$RIDGE" --db "$db" --tag same
prints '^2 points: 2 unchanged'
prints 'same program \(equal hash\), measured in turns'
is "two runs, finished" "finished finished" "$(sql 'SELECT group_concat(state, " ") FROM run')"
is "they name each other" 2 "$(sql 'SELECT count(*) FROM run AS a JOIN run AS b ON a.turns_uuid = b.uuid AND b.turns_uuid = a.uuid AND a.id <> b.id')"
is "BASE has a tag of its own, HEAD is the latest" "same.base same" "$(sql 'SELECT group_concat(tag, " ") FROM (SELECT tag FROM run ORDER BY id)')"
is "three rounds, one seed" "3 1" "$(sql 'SELECT min(rounds) || " " || count(DISTINCT order_seed) FROM run')"
is "a visit a round, of both sides" "0,1,2" "$(sql 'SELECT DISTINCT group_concat(round) FROM visit GROUP BY result')"
is "eight pairs a visit at least" 8 "$(sql 'SELECT min(samples) FROM visit')"
is "as many samples on both sides, visit by visit" 6 "$(sql 'SELECT count(*) FROM visit AS a JOIN visit AS b USING (round, samples) JOIN result AS r ON r.id = a.result JOIN result AS s ON s.id = b.result AND s.sequence = r.sequence AND r.run = 1 AND s.run = 2')"
is "every sample has its visit" 48 "$(sql 'SELECT count(*) FROM sample WHERE result = 1 OR result = 2')"
is "BASE is not verified" "not verified in turns" "$(sql 'SELECT DISTINCT verify_how FROM result WHERE run = 1')"
is "what was seen around the visits is stored" 0 "$(sql 'SELECT count(*) FROM visit WHERE steal_share IS NULL AND reason = ""')"
runs ridge compare same.base same --db "$db"
prints '^2 points: 2 unchanged'
runs ridge run ncf --device null --threads 1 --against "$RIDGE" --db "$tap_dir/j.db" --rounds 2 --json
is "two rounds" "0,1" "$(sql 'SELECT DISTINCT group_concat(round) FROM visit GROUP BY result' "$tap_dir/j.db")"
check "JSON" jq -e . "$output"

# ---- an older program ----
runs ridge run ncf --device null --threads 1 --quick-tune --isa avx2 --against "$tap_dir/older" --db "$tap_dir/o.db"
prints '^1 points?: 1 unchanged'
is "it got all that the point asks for, and nothing that it does not know" \
    "run ncf --on-request --batch 256 --threads 1 --device null --isa avx2 --quick-tune" "$(grep ^run "$tap_dir/asked" | sort -u)"
is "only lines that it knows" "line  line 1" "$(sort -u "$tap_dir/lines" | tr '\n' ' ' | sed 's/ $//')"
is "a fresh process each round" 3 "$(grep -c ^run "$tap_dir/asked")"
is "its version, and the hash of its file" "0.0.1 0ld 16" "$(sql 'SELECT version || " " || git || " " || length(uid) FROM build WHERE version = "0.0.1"' "$tap_dir/o.db")"
echo 13000000 >"$tap_dir/script"
run ridge run ncf --device null --threads 1 --against "$tap_dir/older" --db "$tap_dir/o.db" --tag slow
exits 1
prints '^regressed +ncf.*\+30'
run ridge compare slow.base slow --db "$tap_dir/o.db"
exits 1
echo 10000000 >"$tap_dir/script"

# ---- where a slowdown of 5 % could go unnoticed there are more rounds, by the scatter alone ----
cat >"$tap_dir/restless" <<END2
#!/bin/sh
[ "\$1" != version ] || { echo '{"version": "1"}'; exit; }
case "\$2" in ncf) echo >>"$tap_dir/started" ;; esac
ms=10.0
[ "\$2" != ncf ] || ms=\$(awk 'END { split("10.0 10.9 9.1", of, " "); print of[NR % 3 + 1] }' "$tap_dir/started")
echo ready
while read -r _; do
    echo "\$ms"
done
END2
chmod +x "$tap_dir/restless"
run ridge run ncf wide_deep --device null --threads 1 --against "$tap_dir/restless" --db "$tap_dir/n.db" --tag noisy
prints '^inconclusive +ncf'
prints '^2 points: 1 inconclusive, 1 unchanged|^2 points: 1 unchanged, 1 inconclusive'
is "the point that scatters was visited more often, the other was not" "1 3" \
    "$(sql 'SELECT max(n) > 3, min(n) FROM (SELECT count(*) AS n FROM visit GROUP BY result)' "$tap_dir/n.db" | tr '|' ' ')"
is "by both programs" 0 "$(sql 'SELECT count(*) FROM result WHERE run = 1 AND sequence = 0 AND (SELECT count(*) FROM visit WHERE result = id) <> (SELECT count(*) FROM visit JOIN result AS h ON h.id = visit.result WHERE h.run = 2 AND h.sequence = 0)' "$tap_dir/n.db")"

# ---- what fails is a point of one side, with the last line that the child said ----
printf '#!/bin/sh\n[ "$1" != version ] || { echo "{\\"version\\": \\"1\\"}"; exit; }\necho ready\nread -r _; echo 10.0; echo first >&2; echo "out of luck" >&2; kill -9 $$\n' >"$tap_dir/dies"
chmod +x "$tap_dir/dies"
run ridge run ncf wide_deep --device null --threads 1 --against "$tap_dir/dies" --db "$tap_dir/d.db"
exits 4
prints '^2 points?: 2 (invalid|missing)'
is "BASE failed for that reason, both runs are whole" "2 finished,finished" \
    "$(sql 'SELECT count(*) || " " || (SELECT group_concat(state) FROM run) FROM result WHERE run = 1 AND status = "failed" AND reason GLOB "*out of luck"' "$tap_dir/d.db")"
is "HEAD says why it was not measured" 2 "$(sql 'SELECT count(*) FROM result WHERE run = 2 AND status = "skipped" AND reason GLOB "not measured: BASE failed*out of luck"' "$tap_dir/d.db")"
echo nonsense >"$tap_dir/script"
run ridge run ncf --device null --threads 1 --against "$tap_dir/older" --db "$tap_dir/d.db"
exits 3
prints '^failed +ncf'
prints 'is no number of nanoseconds'
echo 10000000 >"$tap_dir/script"

refuses 'nothing: No such file' ridge run ncf --device null --against "$tap_dir/nothing" --db "$db"
refuses 'asking no-such-command what it is: cannot start' \
    ridge run ncf --device null --against no-such-command --db "$db"
refuses 'no regular file' ridge run ncf --device null --against "$tap_dir" --db "$db"
refuses '/bin/true is no ridge' ridge run ncf --device null --against /bin/true --db "$db"
for option in --resume --no-db --interleave --on-request; do
    refuses "$option has no meaning with --against" ridge run ncf --device null --against "$RIDGE" $option --db "$db"
done
run ridge run ncf --device null --against "$RIDGE" --rounds 101 --db "$db"
exits 2
run ridge run ncf --device null --scenario server,offline --latency-bound 1 --against "$RIDGE" --db "$tap_dir/s.db"
exits 5
complains '2 points were not compared'
is "reasons are stored" 4 "$(sql 'SELECT count(*) FROM result WHERE status = "skipped" AND reason GLOB "not in turns: *"' "$tap_dir/s.db")"

# ---- interrupted ----
printf '#!/bin/sh\n[ "$1" != version ] || { echo "{\\"version\\": \\"1\\"}"; exit; }\necho ready\nwhile read -r _; do sleep 0.01; echo 10.0; done\n' >"$tap_dir/slow"
chmod +x "$tap_dir/slow"
"$RIDGE" run ncf --batch "$(seq -s, 1 200)" --device null --threads 1 --against "$tap_dir/slow" --db "$tap_dir/i.db" >"$output" 2>"$errors" </dev/null &
pid=$!
for _ in $(seq 1 600); do
    sleep 0.1
    [ "$(sqlite3 "$tap_dir/i.db" 'SELECT count(*) FROM result' 2>/dev/null || echo 0)" -lt 6 ] || break
done
kill -INT $pid
wait $pid
code=$?
tap_what="interrupted"
exits 4
complains 'interrupted; the comparison is of what was complete'
is "both say so" interrupted,interrupted "$(sql 'SELECT group_concat(state) FROM run' "$tap_dir/i.db")"
is "as many visits on both sides" 1 "$(sql 'SELECT (SELECT count(*) FROM visit JOIN result ON id = result WHERE run = 1) = (SELECT count(*) FROM visit JOIN result ON id = result WHERE run = 2)' "$tap_dir/i.db")"
check "something was complete" test "$(sql 'SELECT count(*) FROM visit' "$tap_dir/i.db")" -ge 6
is "no child is left" "" "$(processes_of "$tap_dir/slow")"

# ---- a baseline keeps its program ----
runs ridge compare --set-baseline rel same --db "$db"
complains 'with --keep-program'
run ridge list baselines --db "$db"
prints '^rel .*not kept'
refuses 'program of baseline "rel" .* is not kept' ridge run ncf --device null --against baseline:rel --db "$db"
runs ridge compare --set-baseline rel same --keep-program --db "$db"
complains 'kept in .*/r.db.programs/[0-9a-f]{16}$'
uid=$(sql 'SELECT uid FROM build')
kept=$db.programs/$uid
check "the program is there" test -x "$kept/ridge"
is "and is the same" "$uid" "$("$kept/ridge" version --json | jq -r .uid)"
is "nothing else is left" "$uid" "$(ls -A "$db.programs")"
before=$(stat -c %i "$kept")
run ridge compare --set-baseline again same --keep-program --db "$db"
complains 'as it was before'
is "it is not replaced" "$before" "$(stat -c %i "$kept")"
run ridge list baselines --db "$db" --json
holds 'all(.[]; .program | endswith("/ridge")) and length == 2'
for word in baseline:rel rel; do
    runs ridge run ncf --device null --threads 1 --against $word --db "$db"
    prints '^1 points?: 1 unchanged'
done
refuses 'has no baseline "none"' ridge run ncf --device null --against baseline:none --db "$db"
echo >>"$kept/ridge"
refuses 'it was changed after it was kept' ridge run ncf --device null --against rel --db "$db"
sql "UPDATE build SET uid = '0123456789abcdef' WHERE uid = '$uid'"
refuses 'cannot be kept: it was build 0123456789abcdef' \
    ridge compare --set-baseline other same --keep-program --db "$db"
check "nothing was made of it" test ! -e "$db.programs/0123456789abcdef"
run ridge compare same.base same --keep-program --db "$db"
exits 2

# ---- real kernels ----
unset RIDGE_NULL_SCRIPT
run ridge run ncf gemm:m=64,n=64,k=64 --threads 1 --seconds 0.2 --seconds-max 1 --against "$RIDGE" --db "$tap_dir/real.db"
check "one program against itself is no regression" test "$code" != 1
check "and no failure" test "$code" != 3
check "that BASE was not verified in turns is no change of work" sh -c '! grep -q "not verified" "$0"' "$output"
is "HEAD is verified, once" "reference f64 2" "$(sql 'SELECT verify_how || " " || count(*) FROM result WHERE run = 2 AND verify_error IS NOT NULL AND verify_bound > 0' "$tap_dir/real.db")"
check "HEAD has its work and its steps" test "$(sql 'SELECT count(*) FROM metric JOIN result AS r ON r.id = metric.result WHERE run = 2 AND ((name = "flops" AND op IS NULL) OR (name = "time_s" AND op IS NOT NULL))' "$tap_dir/real.db")" -ge 4
is "BASE claims no work" 0 "$(sql 'SELECT count(*) FROM metric JOIN result AS r ON r.id = metric.result WHERE run = 1 AND name IN ("flops", "flop_rate", "bytes_streamed")' "$tap_dir/real.db")"
model=/usr/share/libonnx-testdata/data/node/test_relu/model.onnx
sample=${RIDGE_BUILD:-build/release}/tests/plugin_sample/sample.so
if [ -f "$model" ] && [ -f "$sample" ]; then
    mkdir "$tap_dir/plugins"
    cp "$sample" "$tap_dir/plugins/"
    # Eight times the work: processes of one program lie up to twice apart on a restless machine.
    printf '#!/bin/sh\nexec env RIDGE_SAMPLE_REPEAT=40000 "%s" "$@"\n' "$(realpath "$RIDGE")" >"$tap_dir/plain"
    chmod +x "$tap_dir/plain"
    run env RIDGE_PLUGIN_PATH="$tap_dir/plugins" RIDGE_SAMPLE_REPEAT=320000 "$RIDGE" run "$model" --providers sample --threads 1 --rounds 6 \
        --against "$tap_dir/plain" --db "$tap_dir/p.db" --tag slower
    exits 1
    prints '^regressed '
    prints 'same program: a setting of one side, or chance'
fi
finish
