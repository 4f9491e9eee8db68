#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No variable that can change outlives a function, except those that tools/allowed_globals.txt names
# with a reason. Looks at .data and .bss of the objects of a build (constant tables with pointers
# are in .data.rel.ro; DW.ref. is how C++ finds its exception types; nvcc registers kernels by stubs and
# handles of its own). Usage: check_globals.sh BUILD_FOLDER
set -u
build=$1
find "$build" -name '*.o' -not -path '*/tests/*' -not -path '*/gen/*' -not -path '*/host/*' | LC_ALL=C sort |
    while read -r object; do
        file=${object#"$build"/}
        echo "$file object" # so that what was not built is not missed
        objdump -t "$object" | awk -v file="$file" '
            { for (k = 2; k < NF - 1; k++)
                  if ($k ~ /^\.(data|bss|tdata|tbss)($|\.)/ && $k !~ /^\.data\.rel\.ro/ && $k !~ /DW\.ref\./ &&
                      $NF !~ /__device_stub__|__cudaFatCubinHandle/ &&
                      $NF != $k && $(NF - 1) !~ /^0+$/) {
                      name = $NF; sub(/\.[0-9]+$/, "", name); print file, name } }'
    done | sed 's|^pic/||; s|\.\(scalar\|avx2\|avx512\)\.o |.o |; s|\.o | |' | LC_ALL=C sort -u |
    awk '
        function is_file(name) { return (getline line < (name ".c")) > 0 }
        NR == FNR { if ($0 !~ /^#/ && NF) allowed[$1 " " $2] = $1; next }
        $2 == "object" { built[$1] = 1; next }
        !(($1 " " $2) in allowed) { print $1 ".c: variable \"" $2 "\" can change and is global"; bad = 1 }
        { seen[$1 " " $2] = 1 }
        END {
            for (k in allowed) if (!(k in seen) && (allowed[k] in built || !is_file(allowed[k]))) {
                print "tools/allowed_globals.txt: \"" k "\" is not there any more"; bad = 1 }
            exit bad
        }' tools/allowed_globals.txt -
