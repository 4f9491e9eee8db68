#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program whose kernels of one operator take 5 % (15 %) longer: is it found? Builds it from a copy of this
# tree and slowed_kernel.patch, which lets every kernel of that operator spin for a share of the time that it
# took. A point uses the operator when its steps take most of the point's time, by its steps in the
# database. Passes when 5 % are found in 95 % of those points in turns, and 15 % in 90 % over nights.
#
#   RIDGE_TRIALS    runs in turns (3) and times a set of nights is tried (1)
#   RIDGE_NIGHTS    runs of the plain program before (6); 0: no nights at all
#   RIDGE_SUITE     what is run (quick); options may follow
#   RIDGE_OPERATOR  which kernels are slowed (Conv)
#   RIDGE_SHARE     of the point's time in its steps, from which on it uses them, in % (80)
#   RIDGE_SLOWED_PROGRAM  one that was built before
#   RIDGE_KEEP      a folder for databases and program, which stay; made where it is absent
. tests/lib/tap.sh
. tests/lib/verdicts.sh
operator=${RIDGE_OPERATOR:-Conv}
dir=$(kept_folder)
plain=$(realpath "$RIDGE")
slowed=${RIDGE_SLOWED_PROGRAM:-$dir/slowed/ridge}

build() {
    [ ! -x "$slowed" ] || return 0
    mkdir -p "$dir/slowed" &&
        tar --exclude=./build --exclude=./out --exclude=./.git --exclude=./ridge -cf - . | tar -xf - -C "$dir/slowed" &&
        (cd "$dir/slowed" && patch -p1 <tests/long/slowed_kernel.patch && ${MAKE:-make} -j"$(nproc)" ridge)
}
check "the slowed program builds" build
[ -x "$slowed" ] || { tail -5 "$tap_dir/check"; finish; }

# Keys of points whose time the slowed operator takes.
users() { # database, tag
    sqlite3 "$1" "SELECT p.key FROM result AS r JOIN point AS p ON p.id = r.point JOIN run AS u ON u.id = r.run
        WHERE u.tag = '$2' AND (SELECT total(value) FROM metric AS m JOIN op AS o ON o.result = m.result AND o.idx = m.op
            WHERE m.result = r.id AND m.name = 'time_s' AND o.kind = '$operator') * 100 >= ${RIDGE_SHARE:-80} *
            (SELECT total(value) FROM metric AS m WHERE m.result = r.id AND m.name = 'time_s' AND m.op IS NOT NULL)
        AND EXISTS (SELECT 1 FROM metric AS m WHERE m.result = r.id AND m.name = 'time_s' AND m.op IS NOT NULL)"
}

found=0
wanted=0
count_found() { # database, base, head, tag of a run with steps
    users "$1" "$4" | sort >"$tap_dir/users"
    "$RIDGE" compare "$2" "$3" --db "$1" --json 2>"$tap_dir/compare" |
        jq -r '.[] | "\(.point) \(.verdict) \(.ratio) \(.label)"' | sort | join "$tap_dir/users" - >"$tap_dir/judged"
    sed 's/^[^ ]* /# /' "$tap_dir/judged"
    [ -s "$tap_dir/judged" ] || echo "# $2, $3: no point that uses $operator was judged; $(tail -1 "$tap_dir/compare")"
    wanted=$((wanted + $(wc -l <"$tap_dir/judged")))
    found=$((found + $(grep -c '^[^ ]* regressed ' "$tap_dir/judged")))
}

# ---- in turns, 5 % ----
trials=${RIDGE_TRIALS:-3}
for n in $(seq 1 "$trials"); do
    RIDGE_SLOWED=$operator=5 "$slowed" run ${RIDGE_SUITE:-quick} --against "$plain" --db "$dir/turns.db" \
        --tag "slowed.$n" --quiet >"$tap_dir/run" 2>"$errors"
    count_found "$dir/turns.db" "slowed.$n.base" "slowed.$n" "slowed.$n"
done
[ "$wanted" -gt 0 ] && [ $((100 * found)) -ge $((95 * wanted)) ]
tap_result $? "5 % slower $operator, in turns: found in $found of $wanted points"

# ---- over nights, 15 % ----
found=0
wanted=0
nights=${RIDGE_NIGHTS:-6}
if [ "$nights" -gt 0 ]; then
    for n in $(seq 1 "$nights"); do
        "$plain" run ${RIDGE_SUITE:-quick} --db "$dir/nights.db" --tag "night.$n" --no-report --quiet >"$tap_dir/run" 2>"$errors"
    done
    for n in 1 2 3; do
        RIDGE_SLOWED=$operator=15 "$slowed" run ${RIDGE_SUITE:-quick} --db "$dir/nights.db" --tag "slow.$n" --no-report \
            --quiet >"$tap_dir/run" 2>"$errors"
    done
    count_found "$dir/nights.db" "night.$(((nights + 1) / 2))" slow.1,slow.2,slow.3 slow.1
    [ "$wanted" -gt 0 ] && [ $((100 * found)) -ge $((90 * wanted)) ]
    tap_result $? "15 % slower $operator, over nights: found in $found of $wanted points"
fi
finish
