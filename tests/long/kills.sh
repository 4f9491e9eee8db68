#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 100 kills (SIGKILL) at random moments: of runs that go on with --resume, and of every command that writes. After
# each the database is sound; at the end of each run every planned point is stored once with all its samples, and
# what a killed command was to write is either whole or was never there.
# RIDGE_KILLS (100): how many; RIDGE_SEED (1).
. tests/lib/tap.sh
kills=${RIDGE_KILLS:-100}
# shellcheck disable=SC3045 # dash and bash have ulimit -v
case $RIDGE in
*asan* | *tsan*) ;; # a sanitizer reserves terabytes
*) ulimit -v 8388608 ;;
esac
batches=$(seq -s, 1 60)
killed=0 unsound=0 runs=0 complete=0 left_out=0 torn=0 hung=0

# A number below the first argument, from the seed and how often it was asked.
drawn=0
below() {
    drawn=$((drawn + 1))
    awk -v seed="$((${RIDGE_SEED:-1} * 100000 + drawn))" -v most="$1" 'BEGIN { srand(seed); rand(); printf "%d", rand() * most }'
}

# Starts the words in the background and kills them after so many ms at most; true: they still ran.
kill_within() { # most ms, words...
    moment=$(below "$1")
    shift
    "$@" >"$output" 2>"$errors" </dev/null &
    victim=$!
    sleep "$(awk -v ms="$moment" 'BEGIN { printf "%.3f", ms / 1000 }')"
    kill -9 $victim 2>/dev/null
    wait $victim 2>/dev/null
    [ $? = 137 ] || return 1
    killed=$((killed + 1))
}

sound() {
    [ ! -s "$1" ] && return
    [ "$(sqlite3 "$1" 'PRAGMA integrity_check; PRAGMA foreign_key_check' 2>&1)" = ok ] && return
    unsound=$((unsound + 1))
    echo "# $1: $(sqlite3 "$1" 'PRAGMA integrity_check; PRAGMA foreign_key_check' 2>&1 | head -3)"
}

measure() { # most ms until the kill, 0: none
    most=$1
    set -- "$RIDGE" run ncf --batch "$batches" --device null --no-ceilings --no-report --samples 5 \
        --seconds 0.001 --db "$db" --resume --quiet
    if [ "$most" = 0 ]; then
        timeout -k 5 20 "$@" >"$output" 2>"$errors" </dev/null
        [ $? != 124 ] || hung=$((hung + 1))
    else
        kill_within "$most" "$@"
    fi
}

# A run that came to its end is not gone on with: the next one would be a new one.
came_to_its_end() {
    [ -s "$db" ] && [ "$(sqlite3 "$db" "SELECT count(*) FROM run WHERE state = 'finished'" 2>&1)" = 1 ]
}

# Killed, and gone on with, until it was killed three times or came to its end.
run_and_resume() {
    db=$tap_dir/run-$killed.db
    runs=$((runs + 1))
    for kill in 1 2 3; do
        : "$kill"
        [ "$killed" -lt "$kills" ] || break
        came_to_its_end || measure 400
        sound "$db"
    done
    came_to_its_end || measure 0
    sound "$db"
    left_out=$((left_out + $(sqlite3 "$db" "SELECT count(*) FROM result WHERE reason LIKE 'left out%'")))
    answer=$(sqlite3 "$db" "SELECT count(*), count(DISTINCT sequence), count(DISTINCT run), max(sequence),
        (SELECT count(*) FROM run WHERE state = 'finished'), (SELECT count(*) FROM attempt),
        (SELECT count(*) FROM result AS r WHERE r.status = 'ok' AND (SELECT count(*) FROM sample AS s
            WHERE s.result = r.id AND s.phase = 'time') IS NOT (SELECT m.n FROM metric AS m
            WHERE m.result = r.id AND m.op IS NULL AND m.name = 'time_s')),
        (SELECT count(*) FROM (SELECT max(idx) + 1 - count(*) AS gap FROM sample GROUP BY result) WHERE gap <> 0)
        FROM result")
    if [ "$answer" = '60|60|1|59|1|0|0|0' ]; then
        complete=$((complete + 1))
        rm -f "$db"
    else
        echo "# $db: $answer"
        head -3 "$errors" | sed 's/^/# /'
    fi
}

# What writes files beside the database, or into another one.
RUNS=3 SAMPLES=40 tests/lib/sample_db.sh "$tap_dir/sound.db"
export_and_kill() {
    rm -f "$tap_dir/results.json"
    kill_within 60 "$RIDGE" export --format json --run all --db "$tap_dir/sound.db" -o "$tap_dir/results.json"
    [ ! -e "$tap_dir/results.json" ] || jq -e . "$tap_dir/results.json" >/dev/null 2>&1 || {
        torn=$((torn + 1))
        echo "# results.json is cut off"
    }
}
model_and_kill() {
    rm -f "$tap_dir/model.onnx"
    kill_within 60 "$RIDGE" export gcn -o "$tap_dir/model.onnx"
    [ ! -e "$tap_dir/model.onnx" ] || "$RIDGE" import "$tap_dir/model.onnx" >/dev/null 2>&1 || {
        torn=$((torn + 1))
        echo "# model.onnx is cut off"
    }
}
ingest_and_kill() {
    rm -f "$tap_dir"/merged.db*
    kill_within 60 "$RIDGE" ingest "$tap_dir/sound.db" --db "$tap_dir/merged.db"
    sound "$tap_dir/merged.db"
    timeout 20 "$RIDGE" ingest "$tap_dir/sound.db" --db "$tap_dir/merged.db" >/dev/null 2>&1
    [ "$(sqlite3 "$tap_dir/merged.db" 'SELECT count(*) FROM sample')" = "$(sqlite3 "$tap_dir/sound.db" 'SELECT count(*) FROM sample')" ] || {
        torn=$((torn + 1))
        echo "# merged.db has not all samples"
    }
}
read_and_kill() {
    for words in "report -o $tap_dir/report" "plot roofline --svg -o $tap_dir/plots" "compare latest~1 latest" \
        "compare latest --set-baseline kept" "history" "list runs" "peaks --save --quick"; do
        [ "$killed" -lt "$kills" ] || break
        # shellcheck disable=SC2086 # words
        kill_within 150 "$RIDGE" $words --db "$tap_dir/sound.db"
        sound "$tap_dir/sound.db"
    done
}
tune_and_kill() {
    kill_within 500 "$RIDGE" explain gemm:m=256,n=256,k=256 --cache "$tap_dir/tuner"
    timeout 60 "$RIDGE" infer gemm:m=64,n=64,k=64 --cache "$tap_dir/tuner" >/dev/null 2>"$errors" || {
        torn=$((torn + 1))
        echo "# the tuner's cache: $(head -1 "$errors")"
    }
}

rounds=0
while [ "$killed" -lt "$kills" ] && [ $rounds -lt $((4 * kills)) ]; do
    rounds=$((rounds + 1))
    for what in run_and_resume run_and_resume export_and_kill model_and_kill ingest_and_kill read_and_kill tune_and_kill; do
        [ "$killed" -lt "$kills" ] && $what
    done
done
code=0
[ "$killed" -ge "$kills" ]
tap_result $? "$killed kills hit a running command"
[ $unsound = 0 ]
tap_result $? "$unsound databases were not sound after a kill"
[ $complete = $runs ]
tap_result $? "$complete of $runs runs came to their end with every point once and all samples ($left_out points left out)"
[ $torn = 0 ]
tap_result $? "$torn files were cut off"
[ $hung = 0 ]
tap_result $? "$hung commands ran for more than 20 s"
finish
