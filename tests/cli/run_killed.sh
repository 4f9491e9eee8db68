#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run killed at 25 moments (tests/long/kills.sh: at many more): the database opens and is sound, what
# was finished is there, and --resume completes the plan with no point twice and no visit anew. On the
# null device, so that points are short.
. tests/lib/tap.sh
points=60
batches=$(seq -s, 1 $points)
damaged=0
lost=0
resumed=0
anew=0

# The visits of a database, each by the moment when it was made.
visits() {
    sqlite3 "$1" "SELECT sequence, round, v.started_utc, v.samples FROM visit v JOIN result r ON r.id = v.result
        ORDER BY sequence, round" | sort
}

# Points that the run announced on its output were stored before.
announced() { grep -c '^ncf' "$1"; }

# How long a whole run takes here, in ms: the kills are spread over it.
began=$(date +%s%N)
"$RIDGE" run ncf --batch "$batches" --device null --no-ceilings --no-report --db "$tap_dir/whole.db" \
    --samples 5 --seconds 0.001 >/dev/null 2>&1
whole=$((($(date +%s%N) - began) / 1000000))
late=0

for attempt in $(seq 1 25); do
    db=$tap_dir/$attempt.db
    log=$tap_dir/$attempt.log
    "$RIDGE" run ncf --batch "$batches" --device null --no-ceilings --no-report --db "$db" \
        --samples 5 --seconds 0.001 >"$log" 2>/dev/null &
    victim=$!
    # Another moment each time, up to the end: in all rounds.
    moment=$((whole * (attempt * 37 % 50) / 50))
    sleep "$((moment / 1000)).$(printf '%03d' $((moment % 1000)))"
    kill -9 $victim 2>/dev/null
    wait $victim 2>/dev/null
    said=$(announced "$log")
    if [ -s "$db" ]; then
        [ "$(sqlite3 "$db" 'PRAGMA integrity_check' 2>&1)" = ok ] || damaged=$((damaged + 1))
        stored=$(sqlite3 "$db" 'SELECT count(*) FROM result' 2>/dev/null || echo 0)
        [ "${stored:-0}" -ge "$said" ] || lost=$((lost + 1))
    else
        [ "$said" = 0 ] || lost=$((lost + 1))
    fi
    # Every fifth one is completed.
    [ $((attempt % 5)) = 0 ] || continue
    if [ "$(sqlite3 "$db" "SELECT count(*) FROM run WHERE state = 'finished'" 2>/dev/null)" = 1 ]; then
        echo "# attempt $attempt came too late: the run was finished"
        late=$((late + 1))
        whole=$((whole * 3 / 4)) # the machine has become faster
        continue
    fi
    visits "$db" >"$tap_dir/before" 2>/dev/null
    "$RIDGE" run ncf --batch "$batches" --device null --no-ceilings --no-report --db "$db" \
        --samples 5 --seconds 0.001 --resume >/dev/null 2>&1
    visits "$db" >"$tap_dir/after" 2>/dev/null
    [ -z "$(comm -23 "$tap_dir/before" "$tap_dir/after")" ] || anew=$((anew + 1))
    [ "$(wc -l <"$tap_dir/after")" = $((3 * points)) ] || anew=$((anew + 1))
    echo "# attempt $attempt: $(wc -l <"$tap_dir/before") visits before it was killed"
    counts=$(sqlite3 "$db" "SELECT count(*), count(DISTINCT sequence), count(DISTINCT run)
        FROM result" 2>&1)
    state=$(sqlite3 "$db" 'SELECT state FROM run ORDER BY id DESC LIMIT 1' 2>&1)
    if [ "$counts" = "$points|$points|1" ] && [ "$state" = finished ]; then
        resumed=$((resumed + 1))
    else
        echo "# attempt $attempt: $counts, $state"
    fi
done
code=0
[ $damaged = 0 ]
tap_result $? "25 kills, $damaged damaged databases"
[ $lost = 0 ]
tap_result $? "$lost databases lost a point that was announced"
[ $((resumed + late)) = 5 ] && [ $resumed -ge 2 ]
tap_result $? "$resumed of 5 completed by --resume with every point once, $late were finished before"
[ $anew = 0 ]
tap_result $? "$anew of 5 lost a visit, or made one again"
finish
