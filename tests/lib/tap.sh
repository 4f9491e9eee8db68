# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For tests of the command line: `. tests/lib/tap.sh`, then
#
#     run ridge list --json       output, errors and code of the command are kept
#     exits 0                     each of these is one test
#     prints '"resnet50"'         a pattern (grep -E) that standard output must contain
#     complains 'did you mean'    the same for standard error
#     holds 'length > 3'          a jq expression that must be true of standard output
#     check "what" command...     any command that must succeed
#     runs ridge doctor           the same as run, with exits 0
#     refuses 'did you mean' ridge graph resnt50   as run, with exits 2 and complains
#     is "what" WANTED GOT        two texts that must be the same
#     sql "SELECT ..." [FILE]     of a database, $db where none is named; one that fails is a failed test
#     finish                      at the end
#
# RIDGE is the program; tools/run_tests.sh sets it. Tests run in the root of the tree.
set -u
RIDGE=${RIDGE:-./ridge}
tap_count=0
tap_bad=0
tap_dir=$(mktemp -d)
trap 'rm -rf "$tap_dir"' EXIT
output=$tap_dir/output
errors=$tap_dir/errors
tap_what=""
code=0

tap_result() { # 0 or not, description
    tap_count=$((tap_count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_count - $2"
    else
        tap_bad=$((tap_bad + 1))
        echo "not ok $tap_count - $2"
        echo "# exit code $code"
        head -5 "$output" | sed 's/^/# stdout: /'
        head -5 "$errors" | sed 's/^/# stderr: /'
    fi
}

run() {
    tap_what="$*"
    if [ "$1" = ridge ]; then
        shift
        set -- "$RIDGE" "$@"
    fi
    "$@" >"$output" 2>"$errors" </dev/null
    code=$?
}

exits() {
    [ "$code" = "$1" ]
    tap_result $? "$tap_what: exit code $1"
}

runs() {
    run "$@"
    exits 0
}

refuses() { # PATTERN COMMAND...
    refusal=$1
    shift
    run "$@"
    exits 2
    complains "$refusal"
}

prints() {
    grep -qE -- "$1" "$output"
    tap_result $? "$tap_what: prints /$1/"
}

complains() {
    grep -qE -- "$1" "$errors"
    tap_result $? "$tap_what: complains /$1/"
}

prints_nothing() {
    [ ! -s "$output" ]
    tap_result $? "$tap_what: nothing on standard output"
}

holds() {
    jq -e "$1" "$output" >"$tap_dir/jq" 2>&1
    tap_result $? "$tap_what: $1"
}

check() {
    what=$1
    shift
    "$@" >"$tap_dir/check" 2>&1
    tap_result $? "$what"
}

is() {
    [ "$2" = "$3" ]
    tap_result $? "$1: \"$3\", wanted \"$2\""
}

sql() { # often in a subshell, where a count of failures would be lost
    sqlite3 -bail "${2:-$db}" "$1" || echo "$1" >>"$tap_dir/sql_failed"
}

finish() {
    [ ! -e "$tap_dir/sql_failed" ] || tap_result 1 "SQL of the test: $(cat "$tap_dir/sql_failed")"
    echo "1..$tap_count"
    [ "$tap_bad" = 0 ]
    exit $?
}
