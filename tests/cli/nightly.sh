#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The nightly job over invented nights on the null device, and the files of docs/nightly.md.
. tests/lib/tap.sh

root=$(pwd)
RIDGE=$(realpath "$RIDGE")
export RIDGE RIDGE_DB="$tap_dir/nightly.db" RIDGE_SUITE="$tap_dir/suite.toml" RIDGE_NULL_SCRIPT="$tap_dir/script"
cat >"$RIDGE_SUITE" <<'END'
[ceilings]
measure = false
[defaults]
device = "null"
threads = 1
batch = 1
verify = false
layers = false
profilers = "model"
[[workload]]
name = ["ncf", "wide_deep"]
END
cd "$tap_dir" || exit 1
# What is drawn is another test's matter, and takes its time.
printf '#!/bin/sh\nexit 1\n' >gnuplot
chmod +x gnuplot
PATH=$tap_dir:$PATH
night() { # name, ns of an execution
    echo "$2" >script
    run env RIDGE_NIGHT="$1" "$root/tools/nightly.sh"
}

# ---- in turns with the program of the baseline ----
export RIDGE_DB="$tap_dir/turns.db"
night first 1000000
exits 0
complains 'baseline "release" is run'
complains 'its program is kept in'
night second 1000000
exits 0
prints '^2 points: 2 unchanged'
check "one run in turns" jq -e 'all(.[]; .base_runs >= 1 and .verdict == "unchanged")' compare.json
check "nothing to compare the machine with yet" sh -c '! grep -q "the night before" "$0"' "$output"
check "the page shows both" grep -q 'Against another run' out/nightly/index.html
check "both runs are stored" test "$(sqlite3 "$RIDGE_DB" "SELECT count(*) FROM run WHERE tag IN ('second', 'second.base')")" = 2
# The machine is slower, and with it both programs: no regression of the program, and it is said.
night third 1200000
exits 0
prints '^2 points: 2 unchanged'
prints 'the night before'
check "the machine's night is distinguished from the program's" test "$(grep -c '20.0 %' "$output")" -ge 2
# A program that is slower itself: a plug-in that works more. Built here, as its maker would.
model=/usr/share/libonnx-testdata/data/node/test_relu/model.onnx
if [ -f "$model" ]; then
    for times in 10000 80000; do
        mkdir "plug$times"
        make -s -C "$root/tests/plugin_sample" OUT="$tap_dir/plug$times" CFLAGS="-O2 -g -DSAMPLE_REPEAT=$times" >make.log 2>&1
    done
    printf 'rounds = 6\n[ceilings]\nmeasure = false\n[defaults]\nthreads = 1\nproviders = "sample"\n[[workload]]\npath = "%s"\n' "$model" >plug.toml
    summary=$tap_dir/summary
    runs env RIDGE_BASELINE=plug RIDGE_SUITE=plug.toml RIDGE_PLUGIN_PATH="$tap_dir/plug10000" RIDGE_NIGHT=p1 "$root/tools/nightly.sh"
    run env RIDGE_BASELINE=plug RIDGE_SUITE=plug.toml RIDGE_PLUGIN_PATH="$tap_dir/plug80000" RIDGE_NIGHT=p2 GITHUB_ACTIONS=true \
        GITHUB_STEP_SUMMARY="$summary" "$root/tools/nightly.sh"
    exits 1
    prints '^::error title=regressed'
    check "the summary has it" grep -q '^| regressed ' "$summary"
fi
echo nonsense >script
run env RIDGE_NIGHT=fails "$root/tools/nightly.sh"
exits 3
run env RIDGE_SUITE=no_such_suite "$root/tools/nightly.sh"
exits 2
refuses 'turns or nights' env RIDGE_MODE=days "$root/tools/nightly.sh"

# ---- night by night ----
export RIDGE_DB="$tap_dir/nightly.db" RIDGE_MODE=nights
night first 1000000
exits 0
complains 'baseline "release" is run'
night second 1000000
exits 0
prints '^2 points: 2 unchanged'
check "three runs were compared with one" jq -e 'all(.[]; .base_runs == 1 and .head_runs == 3)' compare.json
check "the page shows both" grep -q 'Against another run' out/nightly/index.html
summary=$tap_dir/summary
echo 1200000 >script
run env RIDGE_NIGHT=third GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY="$summary" "$root/tools/nightly.sh"
exits 1
prints '^::error title=regressed ncf'
check "JUnit has two failures" grep -q 'failures="2"' compare.xml
check "the summary has the table" grep -q '^| regressed | ncf' "$summary"
# A workload that fails does not end the night before the comparison names it.
sed -i 's/, "wide_deep"//' suite.toml
echo nonsense >script
run env RIDGE_NIGHT=fourth "$root/tools/nightly.sh"
exits 3
prints '^failed +ncf'
prints '^missing +wide_deep'
run env RIDGE_SUITE=no_such_suite "$root/tools/nightly.sh"
exits 2

# ---- the files that are pasted ----
cd "$root" || exit 1
block() { # n-th block of a language
    awk -v n="$1" -v head="\`\`\`$2" '$0 == head { k++; on = k == n; next } /^```/ { on = 0 } on' docs/nightly.md
}
block 1 yaml >"$tap_dir/github.yml"
block 2 yaml >"$tap_dir/gitlab.yml"
for file in github gitlab; do
    check "$file: runs what exists" sh -c 'grep -q tools/nightly.sh "$0" && test -x tools/nightly.sh' "$tap_dir/$file.yml"
    check "$file: no tabs, no odd indent" sh -c '! grep -qE "	|^( {2})* [^ ]" "$0"' "$tap_dir/$file.yml"
    if command -v ruby >/dev/null; then
        check "$file: YAML" ruby -ryaml -e 'YAML.load_file(ARGV[0])' "$tap_dir/$file.yml"
    elif python3 -c 'import yaml' 2>/dev/null; then
        check "$file: YAML" python3 -c 'import sys, yaml; yaml.safe_load(open(sys.argv[1]))' "$tap_dir/$file.yml"
    fi
done
block 1 sh >"$tap_dir/cron"
check "the lines for cron are a shell's" sh -n "$tap_dir/cron"
# After a pull that failed, the mail held the log of the night before and nothing else.
job=$(sed -n "s/.*\* cd [^ ]* && \(.*\)') | crontab.*/\1/p" "$tap_dir/cron")
mkdir "$tap_dir/checkout"
echo "the night before" >"$tap_dir/checkout/nightly.log"
run sh -c "cd '$tap_dir/checkout' && git() { echo 'no network'; return 1; } && $job"
is "what cron mails when git fails" "no network" "$(cat "$output")"
finish
