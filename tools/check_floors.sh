#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder includes only folders on a lower floor, or itself; peers never include each other.
# Includes are written from the root. Prints every violation; exits 1 when there is one.
set -u
find base engine results workloads profilers collective plots harness tests -name '*.[ch]' \
    2>/dev/null | LC_ALL=C sort | xargs awk '
BEGIN {
    split("base:0 engine:1 results:1 workloads:2 profilers:2 collective:2 plots:2 harness:3 tests:4",
          pairs, " ")
    for (k in pairs) { split(pairs[k], p, ":"); floor[p[1]] = p[2] }
    # What a folder may see of those below it, where that is not everything.
    only["results"] = "base"
    only["plots"] = "base results"
    only["profilers"] = "base engine/run/device.h"
    only["collective"] = "base engine/run/device.h engine/comm.h"
    generated = "^(([a-z_]+_list|absent_plugins)\\.inc|onnx\\.pb-c\\.h)$"
}
function allowed(from, path, to,   words, n, k) {
    if (from == to) return 1
    if (!(to in floor) || floor[to] >= floor[from]) return 0
    if (!(from in only)) return 1
    n = split(only[from], words, " ")
    for (k = 1; k <= n; k++) if (words[k] == to || words[k] == path) return 1
    return 0
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    from = FILENAME; sub(/\/.*/, "", from)
    to = path; sub(/\/.*/, "", to)
    if (path ~ generated) next
    if (path !~ /\//) complaint = "is not written from the root"
    else if (!allowed(from, path, to)) complaint = "is not below " from "/"
    # Plug-ins see one header of ridge: the interface.
    else if (FILENAME ~ /^engine\/kernels\/(onednn|openblas|cublaslt|cudnn)\// && path != "engine/run/plugin.h" &&
             path !~ /^engine\/kernels\//) complaint = "is not part of the plug-in interface"
    else next
    printf "%s:%d: \"%s\" %s\n", FILENAME, FNR, path, complaint
    bad = 1
}
END { exit bad }'
