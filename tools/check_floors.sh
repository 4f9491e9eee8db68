#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder includes only folders of a lower rank, or itself; folders of one rank never include each
# other. Includes are written from the root. Prints every violation; fails when there is one.
set -u
find base engine results workloads profilers collective plots harness tests -name '*.[ch]' -o -name '*.cu' \
    2>/dev/null | LC_ALL=C sort | xargs awk '
function rank_all(value, names,   words, n, k) {
    n = split(names, words, " ")
    for (k = 1; k <= n; k++) rank[words[k]] = value
}
BEGIN {
    # Floors in tens, the rooms of a floor in ones. A folder without a rank belongs to the one above it.
    n = split("base base/system base/numbers base/text", names, " ")
    for (k = 1; k <= n; k++) rank[names[k]] = k
    rank_all(10, "engine/graph results")
    n = split("ops/lib ops/compute ops/family ops reference run", names, " ")
    for (k = 1; k <= n; k++) rank["engine/" names[k]] = 10 + k
    rank_all(17, "engine/run/devices engine/kernels/lib")
    rank_all(18, "engine/kernels/cpu engine/kernels/onednn engine/kernels/openblas")
    rank_all(18, "engine/kernels/cuda engine/kernels/cublaslt engine/kernels/cudnn")
    n = split("compile/passes compile train", names, " ")
    for (k = 1; k <= n; k++) rank["engine/" names[k]] = 18 + k
    n = split("/onnx /onnx/import /onnx/export . /lib /lib/vision /data /data/formats", names, " ")
    for (k = 1; k <= n; k++) rank["workloads" (names[k] == "." ? "" : names[k])] = 22 + k
    n = split("vision recommendation language micro synthetic", names, " ")
    for (k = 1; k <= n; k++) rank["workloads/" names[k]] = 31
    rank_all(31, "profilers collective plots")
    n = split("machine suite watch roofs measure model train cli scale campaign compare turns bench cmd", names, " ")
    for (k = 1; k <= n; k++) rank["harness/" names[k]] = 40 + k
    rank_all(60, "tests")
    # What a folder may see of those below it, where that is not everything.
    all_base = "base base/system base/numbers base/text"
    only["results"] = all_base
    only["plots"] = all_base " results"
    only["profilers"] = all_base " engine/run/device.h"
    only["collective"] = all_base " engine/graph/tensor.h engine/run/device.h engine/run/comm.h"
    # Plug-ins see the interface, and the parts of ridge that know nothing of running.
    n = split("onednn openblas cublaslt cudnn cuda", plugins, " ")
    for (k = 1; k <= n; k++) only["engine/kernels/" plugins[k]] = all_base " engine/graph engine/ops/lib engine/run/plugin.h"
    # Headers that only their own floor may see, and tests.
    n = split("run/exe_internal run/probe compile/stages compile/trial " \
              "compile/passes/rewrite", names, " ")
    for (k = 1; k <= n; k++) private["engine/" names[k] ".h"] = 1
    generated = "^(([a-z_]+_list|absent_plugins)\\.inc|onnx\\.pb-c\\.h)$"
}
# The ranked folder that a path lies in.
function room_of(path) {
    while (sub(/\/[^\/]*$/, "", path)) if (path in rank) return path
    return ""
}
function floor_of(path) { sub(/\/.*/, "", path); return path }
function complaint_of(from, path,   to, words, n, k) {
    if (path !~ /\//) return "is not written from the root"
    to = room_of(path)
    if (from == to) return ""
    if (to == "" || rank[to] >= rank[from]) return "is not below " from "/"
    if (path in private && floor_of(from) != floor_of(path) && from != "tests")
        return "is private to " floor_of(path) "/"
    if (!(from in only)) return ""
    n = split(only[from], words, " ")
    for (k = 1; k <= n; k++) if (words[k] == to || words[k] == path) return ""
    return "is none of what " from "/ may include: " only[from]
}
FNR == 1 && room_of(FILENAME) == "" {
    print FILENAME ": is in no room (tools/check_floors.sh lists them)"
    bad = 1
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    complaint = path ~ generated ? "" : complaint_of(room_of(FILENAME), path)
    if (complaint == "") next
    printf "%s:%d: \"%s\" %s\n", FILENAME, FNR, path, complaint
    bad = 1
}
END { exit bad }'
