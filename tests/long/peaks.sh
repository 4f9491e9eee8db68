#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ceilings against loops that share no code with ridge: within 5 %. Memory of a shared machine
# moves more than that from second to second, so the two take turns and medians are compared.
. tests/lib/tap.sh

program=$tap_dir/peaks
if ! ${CC:-gcc} -O3 -march=native -funroll-loops -ffp-contract=fast -o "$program" tests/oracle/peaks.c 2>"$errors"; then
    cat "$errors"
    echo "no compiler for the independent loops"
    exit 77
fi
runs ridge peaks --json --threads 1
set_of() {
    jq -r --arg n "$1" '.[] | select(.name == $n and .threads == 1) | .working_set_bytes' "$output"
}
l1=$(set_of "copy L1") l2=$(set_of "copy L2") dram=$(set_of "copy DRAM")

# Of the vector widths that ridge tried the best: -march=native chooses the same way.
for _ in 1 2 3 4 5 6 7 8 9; do
    "$RIDGE" peaks --json --quick --threads 1 | jq -r '.[] | select(.value != null and .threads == 1) |
        if .kind == "compute" then "\(.pattern) \(.precision)" else .name end + "\t\(.value)"' |
        sort -t "$(printf '\t')" -k1,1 -k2,2gr | awk -F '\t' '!seen[$1]++' >>"$tap_dir/ridge"
    taskset -c 0 "$program" "$l1" "$l2" "$dram" >>"$tap_dir/other"
done
median() { # file, name
    awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$1" | sort -g | sed -n 5p
}
for name in "fma f32" "fma f64" "copy L1" "triad L1" "copy L2" "triad L2" "copy DRAM" "triad DRAM"; do
    ours=$(median "$tap_dir/ridge" "$name")
    theirs=$(median "$tap_dir/other" "$name")
    ratio=$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.4f", a / b }')
    echo "# $name: ridge $ours, independent $theirs, ratio $ratio"
    awk -v r="$ratio" 'BEGIN { exit !(r > 0.95 && r < 1.0527) }'
    tap_result $? "$name: ratio $ratio within 5 %"
done
finish
