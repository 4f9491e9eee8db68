#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lines per function, file and header, columns, nesting, conditional compilation inside functions.
# tools/size_exceptions.txt lists "FILE WHAT LIMIT reason", WHAT being a function, "file" or "ifdef".
set -u
find base engine workloads harness tests -name '*.[ch]' | LC_ALL=C sort | xargs awk '
function limit_of(what, usual) { return ((FILENAME " " what) in exception) ? exception[FILENAME " " what] : usual }
function report(line, text) { printf "%s:%d: %s\n", FILENAME, line, text; bad = 1 }
function end_file() {
    if (!last) return
    most = last ~ /\.h$/ ? 250 : last == "harness/main.c" ? 60 :
           last ~ /^workloads\/(vision|recommendation|language)\// ? 250 : 500
    if ((last " file") in exception) most = exception[last " file"]
    if (lines > most) { printf "%s: %d lines, limit %d\n", last, lines, most; bad = 1 }
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
!inside && /^[a-zA-Z].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
/^{$/ { inside = 1; start = FNR }
inside && /^[ \t]*#[ \t]*(if|ifdef|ifndef)/ && !((FILENAME " ifdef") in exception) {
    report(FNR, "conditional compilation inside " name) }
inside && /^ {16,}(if|for|while|switch|do)( |$)/ { report(FNR, name ": nested deeper than 3") }
inside && /^}$/ {
    inside = 0
    most = limit_of(name, FILENAME ~ /^engine\/kernels\// ? 120 : 60)
    if (FNR - start - 1 > most) report(start, name " has " FNR - start - 1 " lines, limit " most)
    functions++; if (FNR - start - 1 <= 40) small++
}
END {
    end_file()
    if (functions) printf "%d functions, %.1f %% of them within 40 lines\n", functions,
                          100 * small / functions > "/dev/stderr"
    exit bad
}'
