#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A point that ends the process whenever it is measured (the sample plug-in kills it there, as the
# kernel does when memory is out) is left out at the third try; all others are measured once.
. tests/lib/tap.sh
model=/usr/share/libonnx-testdata/data/node/test_relu/model.onnx
sample=${RIDGE_BUILD:-build/release}/tests/plugin_sample/sample.so
if [ ! -f "$model" ] || [ ! -f "$sample" ]; then
    echo "skipped: needs libonnx-testdata and the sample plug-in"
    exit 77
fi
mkdir -p "$tap_dir/plugins"
cp "$sample" "$tap_dir/plugins/sample.so"
db=$tap_dir/ridge.db

attempt() {
    run env RIDGE_PLUGIN_PATH="$tap_dir/plugins" "$@" "$RIDGE" run gemm:m=64,n=64,k=64 "$model" gemm:m=32,n=32,k=32 \
        --providers native,sample --db "$db" --resume --no-ceilings --no-report --no-layers --profilers model \
        --samples 6 --seconds 0 --seconds-max 1 --retune --quiet
}
stored() { sqlite3 "$db" "SELECT group_concat(sequence || ' ' || iif(status = 'skipped', status, 'run'), ', ') FROM (SELECT * FROM result ORDER BY sequence)"; }
begun() { sqlite3 "$db" "SELECT group_concat(sequence || ' ' || count) FROM attempt"; }

attempt RIDGE_SAMPLE_KILL=1
exits 137
check "it is not stored: $(stored)" test "$(sqlite3 "$db" 'SELECT count(*) FROM result WHERE sequence = 1')" = 0
check "the point is known to be on its way: $(begun)" test "$(begun)" = "1 1"
attempt RIDGE_SAMPLE_KILL=1
exits 137
check "twice: $(begun)" test "$(begun)" = "1 2"
attempt RIDGE_SAMPLE_KILL=1
[ "$code" = 0 ] || [ "$code" = 4 ] # too few samples for a busy machine
tap_result $? "the third time the run comes to its end: exit code $code"
prints 'skipped: left out: the process ended 2 times while this point was measured'
check "every point once: $(stored)" test "$(stored)" = "0 run, 1 skipped, 2 run"
check "nothing is on its way: $(begun)" test -z "$(begun)"
check "one run, finished" test "$(sqlite3 "$db" 'SELECT count(*) || state FROM run')" = 1finished

# What dies once only is measured the second time.
rm "$db"
attempt RIDGE_SAMPLE_KILL=1
exits 137
attempt RIDGE_SAMPLE_KILL=0
check "killed once, then measured: $(stored)" test "$(stored)" = "0 run, 1 run, 2 run"

# What earlier rounds have measured of it stays.
rm "$db"
in_rounds() { # instead of the shell, so that the kill hits it
    exec "$RIDGE" run ncf --batch 1,2,3,4,5,6,7,8 --rounds 3 --device null --no-ceilings --no-report --samples 200 \
        --seconds 0.1 --db "$db" --resume --quiet >/dev/null 2>&1
}
in_rounds &
victim=$!
for wait in $(seq 3000); do
    : "$wait"
    [ -s "$db" ] && [ "$(sqlite3 "file:$db?mode=ro" 'SELECT count(*) > 2 FROM result' 2>/dev/null)" = 1 ] && break
    sleep 0.02
done
kill -9 $victim
wait $victim 2>/dev/null
sqlite3 "$db" "DELETE FROM attempt; INSERT INTO attempt SELECT run, sequence, 2, '' FROM result; UPDATE run SET state = 'running'"
measured=$(sqlite3 "$db" 'SELECT count(*) FROM sample')
(in_rounds)
check "$measured samples of earlier rounds are kept" test "$(sqlite3 "$db" "SELECT count(*) >= $measured AND $measured > 0 FROM sample")" = 1
check "no point that has them is left out" test "$(sqlite3 "$db" "SELECT count(*), sum(status = 'ok') FROM result")" = "8|8"
check "nothing is on its way: $(begun)" test -z "$(begun)"

# Ending it in good order is no attempt, however often.
rm "$db"
for signal in TERM INT TERM; do
    "$RIDGE" run gemm:m=64,n=64,k=64 --db "$db" --resume --no-ceilings --no-report --no-layers --no-verify \
        --profilers model --samples 1000000 --seconds 30 --seconds-max 60 --quiet >/dev/null 2>&1 &
    victim=$!
    for wait in $(seq 600); do
        : "$wait"
        [ "$(sqlite3 "$db" 'SELECT count(*) FROM attempt' 2>/dev/null)" = 1 ] && break
        sleep 0.1
    done
    sleep 0.5
    kill -$signal $victim
    wait $victim
    check "after SIG$signal nothing is on its way" test -z "$(begun)"
done
finish
