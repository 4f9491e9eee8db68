#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The catalogues are the folders of the tree.
. tests/lib/tap.sh

runs ridge list --json
holds 'map(has("name", "domain", "task", "precision", "modes")?) | length > 0'
holds 'all(.[]; (.name and .domain and .task and (.precision | length > 0) and (.modes | length > 0)))'
holds 'map(.name) | contains(["resnet50", "bert_large", "wide_deep", "ncf"])'
jq -r '.[].name' "$output" | LC_ALL=C sort >"$tap_dir/listed"
find workloads -mindepth 2 -name '*.c' -not -path 'workloads/lib/*' -not -path 'workloads/data/*' \
    -not -path 'workloads/onnx/*' -exec basename {} .c \; |
    LC_ALL=C sort >"$tap_dir/files"
check "workloads are the files of the folders" cmp "$tap_dir/listed" "$tap_dir/files"

# The batch of Table I is known of the workloads that the paper's table has, and of no other.
jq '[.[] | select(.table1_batch) | [.name, .table1_batch]] | sort' "$output" >"$tap_dir/catalogue"
check "no row, no batch" jq -e 'all(.[]; has("table1_batch") and .table1_batch != 0)' "$output"
run ridge paper --json
jq '[.. | objects | select(.workload) | [.workload, .batch]] | sort' "$output" >"$tap_dir/paper"
check "rows of Table I are those of the paper" cmp "$tap_dir/catalogue" "$tap_dir/paper"

runs ridge list
prints '^resnet50 +vision +1 +32 '
prints '^vgg16 +vision +1 +- '

runs ridge list ops --json
holds 'length == (map(.domain + "." + .name) | unique | length)'
holds 'all(.[]; .cases > 0)'
jq length "$output" >"$tap_dir/ops"
find engine/ops -maxdepth 1 -name '*.c' | wc -l >"$tap_dir/op_files"
check "one operator per file" test "$(cat "$tap_dir/ops")" -eq "$(cat "$tap_dir/op_files")"

runs ridge list kernels --json
holds 'map(.name) | length == (unique | length)'
holds '.[-1].provider == "reference"'
holds 'all(.[:-1][]; .ops | length > 0)'

runs ridge list plugins --json
holds 'all(.[]; .name and ((.state == "loaded" and .version) or .reason))'

# So are profilers, algorithms between ranks and formats of results.
while read -r what folder; do
    runs ridge list "$what" --json
    holds 'all(.[]; .name and (.summary | length > 10))'
    jq -r '.[].name + ".c"' "$output" | LC_ALL=C sort >"$tap_dir/listed"
    find "$folder" -maxdepth 1 -name '*.c' -exec basename {} \; | LC_ALL=C sort >"$tap_dir/files"
    check "$what are the files of $folder" cmp "$tap_dir/listed" "$tap_dir/files"
done <<'END'
profilers profilers
algorithms collective/algorithms
formats results/formats
END
runs ridge list profilers --json
holds 'all(.[]; .available or (.reason | length > 20))'
runs ridge list algorithms --json
holds '.[] | select(.name == "ring") | .operations | index("all_reduce") != null'
runs ridge list devices --json
holds '.[0] == {"name": "cpu", "count": 1, "reason": null}'
holds 'all(.[]; .count > 0 or (.reason | length > 10))'

for what in workloads suites ops kernels plugins data profilers algorithms formats devices; do
    runs ridge list "$what"
done

run ridge list suites --json
jq -r '.[].name + ".toml"' "$output" >"$tap_dir/listed"
ls suites >"$tap_dir/files"
check "suites are the files of the folder" cmp "$tap_dir/listed" "$tap_dir/files"
holds 'all(.[]; .description and .workloads > 0)'

# ---- plug-ins are opened for what counts their kernels, and for nothing else ----
mkdir "$tap_dir/plugins"
echo "no library" >"$tap_dir/plugins/odd.so"
opens() { # COMMAND... : how often the loader was asked for that file
    RIDGE_PLUGIN_PATH=$tap_dir/plugins LD_DEBUG=files "$RIDGE" "$@" 2>&1 | grep -c 'odd\.so.*dynamically loaded'
}
check "list kernels opens plug-ins" test "$(opens list kernels)" = 1
check "list does not" test "$(opens list)" = 0
check "graph does not" test "$(opens graph ncf)" = 0
check "a model that is refused opens none" test "$(opens infer README.md)$(opens import README.md)" = 00

# ---- runs of a database ----
. tests/lib/made_runs.sh
db=$tap_dir/made.db
made_db "$db"
made_run "$db" 1 aaaa1111-0000 tag=first
made_run "$db" 2 bbbb2222-0000 host=other verdict=invalid
made_run "$db" 3 cccc3333-0000
made_point "$db" 1 resnet50 10
made_point "$db" 1 ncf 2 verdict=invalid
made_point "$db" 2 resnet50 10 status=failed
sqlite3 "$db" "UPDATE run SET planned = 2 WHERE id = 1; UPDATE run SET planned = 0 WHERE id = 3;
    INSERT INTO baseline VALUES ('release', 'aaaa1111-0000', '', '2026-01-01')"
runs ridge list runs --db "$db"
prints '^aaaa1111  2026-01-01 00:00  box +c0ffeeb1  first  release +1 ok, 1 invalid +finished$'
prints '^bbbb2222 .* other .* 0 ok, 1 failed +finished, INVALID: the governor changed$'
prints '^cccc3333 .* ceilings only +finished$'
check "the latest comes first" sh -c 'sed -n 2p "$0" | grep -q ^cccc3333' "$output"
runs ridge list runs --db "$db" --json
holds 'length == 3 and .[2].tag == "first" and .[2].baselines == "release" and .[1].host == "other"'
# A run of ceilings alone is not what latest means.
run ridge compare first latest --db "$db"
prints '^HEAD bbbb2222'
refuses 'absent.db' ridge list runs --db "$tap_dir/absent.db"

refuses '"gpus"' ridge list gpus
prints_nothing

finish
