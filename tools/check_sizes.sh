#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lines per function, file and header, columns, nesting, conditional compilation inside functions.
# tools/size_exceptions.txt lists "FILE WHAT LIMIT reason", WHAT being a function, "file", "nesting"
# or "ifdef".
set -u
find base engine results workloads profilers collective plots harness tests \( -name '*.[ch]' -o -name '*.cu' \) | LC_ALL=C sort | xargs awk '
function limit_of(file, what, usual) {
    if ((file " " what) in exception) return exception[file " " what]
    return usual
}
function report(line, text) {
    printf "%s:%d: %s\n", FILENAME, line, text
    bad = 1
}
function usual_lines(file) {
    if (file ~ /\.h$/) return 250
    if (file ~ /\.cu$/) return 800
    if (file == "harness/cli/main.c") return 60
    if (file ~ /^workloads\/(vision|recommendation|language)\//) return 250
    return 500
}
function end_file(  most) {
    if (!last) return
    most = limit_of(last, "file", usual_lines(last))
    if (lines > most) {
        printf "%s: %d lines, limit %d\n", last, lines, most
        bad = 1
    }
}
BEGIN {
    while ((getline row < "tools/size_exceptions.txt") > 0)
        if (row !~ /^#/ && split(row, w, " ") >= 4) exception[w[1] " " w[2]] = w[3]
}
FNR == 1 { end_file(); last = FILENAME; inside = 0; name = "?" }
{ lines = FNR }
length($0) > 100 { report(FNR, length($0) " columns, limit 100") }
/\t/ { report(FNR, "tab") }
/[ \t]$/ { report(FNR, "blank at the end of the line") }
!inside && /^[a-zA-Z].*\(/ { name = $0; sub(/^TEST\(/, "", name); sub(/[()].*/, "", name); sub(/.*[ *]/, "", name) }
/^[{]$/ { inside = 1; start = FNR }
inside && /^[ \t]*#[ \t]*(if|ifdef|ifndef)/ && !((FILENAME " ifdef") in exception) {
    report(FNR, "conditional compilation inside " name) }
inside && /^ +(if|for|while|switch|do)( |$)/ {
    most = limit_of(FILENAME, "nesting", (FILENAME ~ /^engine\/kernels\//) ? 4 : 3)
    match($0, /^ +/)
    if (RLENGTH > 4 * most) report(FNR, name ": nested deeper than " most)
}
inside && /^[}]$/ {
    inside = 0
    most = limit_of(FILENAME, name, (FILENAME ~ /^engine\/kernels\//) ? 120 : 60)
    if (FNR - start - 1 > most) report(start, name " has " FNR - start - 1 " lines, limit " most)
    count++; if (FNR - start - 1 <= 40) small++
}
END {
    end_file()
    if (count) printf "%d functions, %.1f %% of them within 40 lines\n", count, 100 * small / count
    exit bad
}'
