#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is true of an operator stands in its file (engine/ops), not in lists elsewhere: its name as a
# string is found there alone, and where tools/operator_names.txt allows it. Comments do not count.
set -u
list=tools/operator_names.txt
names=$(grep -hoE '(\.name = |[A-Z]+_OP[A-Z_]*\([a-z0-9_]+, |_REGISTER\([a-z0-9_]+, )"[A-Z][A-Za-z0-9]*"' engine/ops/*.c |
    grep -o '"[^"]*"' | sort -u | tr -d '"' | paste -sd '|' -)
allowed=$(awk '!/^#/ { print $1 }' $list)
bad=0
found=$(grep -rnE --include='*.[ch]' --include='*.cu' "\"($names)\"" base engine results workloads profilers collective plots harness |
    grep -v '^engine/ops/[a-z0-9_]*\.c:' | grep -vE '^[^:]*:[0-9]*: *(/?\*|//)' | sed 's|/\*[^*]*\*/||' | grep -E "\"($names)\"")
for path in $allowed; do
    case $path in
    */) here="^$path" ;;
    *) here="^$path:" ;;
    esac
    echo "$found" | grep -q "$here" || {
        echo "$list: $path names no operator any more"
        bad=1
    }
    found=$(echo "$found" | grep -v "$here")
done
if [ "$found" ]; then
    echo "$found
    ^ an operator's name as a string; make it a field of struct op, or say op_list.h's symbol"
    bad=1
fi
exit $bad
