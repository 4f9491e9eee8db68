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

finish
