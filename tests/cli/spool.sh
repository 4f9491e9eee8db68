#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A database that cannot be written in the middle of a run: the run says where it is kept, and gets in.
. tests/lib/tap.sh
db=$tap_dir/r.db
runs ridge run ncf --device null -s 0.01 --no-report --no-ceilings --db "$db"
"$RIDGE" run gemm:m=512,n=512,k=512 -t 1 -s 3 --interval 0 --rounds 1 --no-verify --no-layers --no-tune --no-report --no-ceilings \
    --db "$db" >"$output" 2>"$errors" &
victim=$!
tries=0
until [ "$(sqlite3 "$db" 'SELECT count(*) FROM attempt' 2>/dev/null)" = 1 ] || [ $tries = 600 ]; do # its point has begun
    tries=$((tries + 1))
    sleep 0.1
done
rm -f "$db"
mkdir "$db" # nobody, root neither, writes a database there
wait $victim
code=$?
tap_what="a run whose database went away"
complains 'is kept in .*r\.db\.spool/.*\.db, not yet in .*r\.db: `ridge ingest'
check "it does not claim to be in the database" sh -c '! grep -qE "run [0-9a-f]+ is in " "$0"' "$errors"
rmdir "$db"
mkdir -p "$db.spool"
touch -d '1 hour ago' "$db.spool/00000000-0000-4000-8000-000000000000.db"
runs ridge run ncf --device null -s 0.01 --no-report --no-ceilings --db "$db"
check "the run is in now" test "$(sqlite3 "$db" "SELECT count(*) FROM point WHERE workload LIKE 'gemm%'")" = 1
check "no spool is left, empty ones neither" test ! -e "$db.spool"

# ---- going on while the disk is still full ----

# Results that are kept apart were measured again, and ended in "UNIQUE constraint failed".
fast="--rounds 1 --no-ceilings --no-report --no-verify --device null"
full=$tap_dir/full
mkdir "$full"
if mount -t tmpfs -o size=700k tmpfs "$full" 2>/dev/null; then
    TMPDIR=$tap_dir
    export TMPDIR
    many="ncf -b 1,2,3,4,5,6,7,8 $fast --samples 3000 --db $full/b.db"
    run ridge run $many
    complains 'is kept in .*\.spool/.*\.db, not yet in'
    run ridge run $many --resume
    exits 2
    complains 'are kept in .*\.spool/.*\.db and could not be taken into .*/b\.db'
    mount -o remount,size=20m "$full"
    runs ridge run $many --resume # the run is in now, and complete: this is another one
    is "each point of the run once" "8 8 finished" "$(sql "SELECT count(*) || ' ' || count(DISTINCT point) || ' ' || state
        FROM result JOIN run ON run.id = run WHERE run = 1 GROUP BY run" "$full/b.db")"
    unset TMPDIR
    umount "$full"
else
    echo "# no right to mount a small file system: not tried"
fi

# A spool that can never be taken in is named, and stands in the way of --resume alone.
mkdir -p "$db.spool"
echo "this is no database at all, but it is long enough to be looked at" >"$db.spool/00000000-0000-4000-8000-000000000001.db"
refuses 'results of an earlier run are kept in .*000001\.db and could not be taken into .*not a database of results' \
    ridge run ncf $fast --db "$db" --resume
runs ridge run ncf $fast --db "$db"
complains 'results kept apart in .*000001\.db could not be taken in: '

finish
