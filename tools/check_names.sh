#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names and forbidden words: an operator's file is its ONNX name in snake case; every pass has its row, and
# every format of data its fuzz target and its row in docs/data.md; every source says its licence; no unsafe
# function, no note to self, no path of somebody's machine.
set -u
bad=0
complain() {
    echo "$1"
    bad=1
}

for file in engine/ops/*.c; do
    base=$(basename "$file" .c)
    grep -o '"[A-Z][A-Za-z0-9]*"' "$file" | tr -d '"' | sed 's/NaN/Nan/
        s/\([a-z0-9]\)\([A-Z]\)/\1_\2/g; s/\([A-Z]\)\([A-Z][a-z]\)/\1_\2/g' |
        tr '[:upper:]' '[:lower:]' | grep -qx "$base" ||
        complain "$file: names no operator that is \"$base\" in snake case"
done

for file in engine/compile/passes/*.c; do
    pass=pass_$(basename "$file" .c)
    grep -q "^enum status $pass(" "$file" || continue
    grep -q "\<$pass\>" engine/compile/passes.c ||
        complain "$file: engine/compile/passes.c has no row for $pass, so it never runs"
done

for file in workloads/data/formats/*.c; do
    format=$(basename "$file" .c)
    [ -f "tests/fuzz/fuzz_$format.c" ] || complain "$file: no fuzz target tests/fuzz/fuzz_$format.c"
    grep -q "^| \`$format\` |" docs/data.md || complain "$file: docs/data.md has no row for it"
done

sources=$(find base engine results workloads profilers collective plots harness tests tools .ci Makefile setup.sh -type f \
    \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name Makefile -o -path '.ci/*' \) |
    LC_ALL=C sort)
for file in $sources; do
    head -3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
        complain "$file: no SPDX line on top"
done

# Prints what a pattern finds; comments and strings count too.
forbid() { # pattern, files, explanation
    # shellcheck disable=SC2086
    found=$(grep -nE "$1" $2 /dev/null) && complain "$found
    ^ $3"
}
c_files=$(echo "$sources" | grep '\.[ch]$')
forbid '\<(strcpy|strcat|sprintf|vsprintf|strtok|gmtime|localtime|atoi|atol|atof|rand|srand|alloca|gets)[ ]*\(' \
    "$c_files" "banned function: use the bounded or reentrant form"
notes='TO''DO|FIX''ME|XX''X|HA''CK'
forbid "\\<($notes)\\>" "$sources" "notes to self belong into the issue tracker"
# alice lives in tests of redaction.
# shellcheck disable=SC2086
found=$(grep -nIE '/(home|work|root|Users)/[a-z]' $sources | grep -v '/home/alice') && complain "$found
    ^ path of somebody's machine"
# Files are written by base/system/output.c alone, which replaces nothing that is not ours. The others: the
# database's spools and copies, a knob of the kernel's, the folders of a kept program, of a simulation
# and of what is counted in a process of its own, which are new.
writers='base/system/output.c results/spool.c results/ingest.c harness/watch/resident.c harness/compare/kept_program.c
harness/turns/count_apart.c harness/bench/smpi.c harness/bench/simulate.c harness/bench/step_simulate.c'
product=$(echo "$c_files" | grep -v '^tests/' | grep -vxF "$(echo "$writers" | tr ' ' '\n')")
forbid '\<(fopen|freopen)\(.*"[wa]|\<[rw]?open(at)?\(.*O_(WRONLY|RDWR|CREAT)|\<(creat|mkstemp|rename|renameat|unlink|unlinkat|remove|truncate)\(' \
    "$product" "files are written by base/system/output.h"
# A header's guard is its path. Headers that are included several times on purpose have none.
# shellcheck disable=SC2046,SC2086
found=$(awk 'FNR == 1 { want = FILENAME; gsub(/[^A-Za-z0-9]/, "_", want); want = toupper(want); seen = 0 }
    /^#ifndef [A-Z0-9_]+_H$/ && !seen++ && $2 != want { print FILENAME ": the guard is " $2 ", not " want }' \
    $(echo "$c_files" | grep '\.h$')) && [ "$found" ] && complain "$found"
forbid 'typedef struct' "$c_files" "structs are named, not hidden behind a typedef"
exit $bad
