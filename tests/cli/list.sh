#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The catalogues are the folders of the tree.
. tests/lib/tap.sh

run ridge list --json
exits 0
holds 'map(has("name", "domain", "task", "precision", "modes")?) | length > 0'
holds 'all(.[]; (.name and .domain and .task and (.precision | length > 0) and (.modes | length > 0)))'
holds 'map(.name) | contains(["resnet50", "bert_large", "wide_deep", "ncf"])'
jq -r '.[].name' "$output" | LC_ALL=C sort >"$tap_dir/listed"
find workloads -mindepth 2 -name '*.c' -not -path 'workloads/lib/*' -exec basename {} .c \; |
    LC_ALL=C sort >"$tap_dir/files"
check "workloads are the files of the folders" cmp "$tap_dir/listed" "$tap_dir/files"

run ridge list
exits 0
prints '^resnet50 +vision'

run ridge list ops --json
exits 0
holds 'length == (map(.domain + "." + .name) | unique | length)'
holds 'all(.[]; .cases > 0)'
jq length "$output" >"$tap_dir/ops"
find engine/ops -name '*.c' | wc -l >"$tap_dir/op_files"
check "one operator per file" test "$(cat "$tap_dir/ops")" -eq "$(cat "$tap_dir/op_files")"

run ridge list kernels --json
exits 0
holds 'map(.name) | length == (unique | length)'
holds '.[-1].provider == "reference"'
holds 'all(.[:-1][]; .ops | length > 0)'

run ridge list plugins --json
exits 0
holds 'all(.[]; .name and ((.state == "loaded" and .version) or .reason))'

for what in workloads ops kernels plugins; do
    run ridge list "$what"
    exits 0
done

run ridge list gpus
exits 2
complains '"gpus"'
prints_nothing

finish
