#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a C file with the contents of FILE... as constant arrays (base/embedded.h).
echo '#include "base/embedded.h"'
n=0
for file in "$@"; do
    printf 'static const unsigned char f%d[] = {' "$n"
    od -An -v -tx1 "$file" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
    echo '0};'
    n=$((n + 1))
done
echo 'const struct embedded embedded_files[] = {'
n=0
for file in "$@"; do
    printf '    {"%s", (const char *)f%d, sizeof(f%d) - 1},\n' "$file" "$n" "$n"
    n=$((n + 1))
done
echo '    {0},'
echo '};'
