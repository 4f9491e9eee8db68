#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All that can be checked without running anything. Each check prints its findings and "ok" or "BAD";
# the last line sums up. Usage: check.sh [NAME...] of the names below; none: all.
set -u
names=$*
failed=""
log=$(mktemp)
trap 'rm -f "$log"' EXIT
jobs=$(nproc 2>/dev/null || echo 1)
sources=$(find base engine results workloads profilers collective plots harness tests -name '*.[ch]' | LC_ALL=C sort)

check() { # name, command...
    name=$1
    shift
    case " $names " in "  " | *" $name "*) ;; *) return ;; esac
    if "$@" >"$log" 2>&1; then
        echo "ok   $name"
    else
        echo "BAD  $name"
        failed="$failed $name"
    fi
    grep -vE '^(CC|LINK) ' "$log" | sed 's/^/     /'
}

build() { # configuration, compiler
    make --no-print-directory -k -j"$jobs" CONFIG="$1" CC="$2" WERROR=1 binary test-programs
}

format() {
    { echo "$sources"; git ls-files '*.cu'; } | xargs clang-format --dry-run 2>&1 | sed -n 's/^\([^: ]*\):.*/\1/p' | uniq -c |
        awk '{ print $2 ": " $1 " places; make fmt" } END { exit NR > 0 }'
}

scripts() {
    shellcheck -x -e SC2016 setup.sh tools/*.sh .ci/run &&
        shellcheck -x -e SC2016,SC2086,SC2317 tests/cli/*.sh tests/gpu/*.sh tests/long/*.sh # options in variables, functions by name
}

static() {
    mkdir -p build/cppcheck
    cppcheck --quiet -j"$jobs" --cppcheck-build-dir=build/cppcheck --std=c11 --error-exitcode=1 \
        --enable=warning,performance,portability --inline-suppr \
        --suppressions-list=tools/cppcheck_suppressions.txt \
        -I. -Ibuild/clang/gen -D__x86_64__=1 -DBUILT_ISAS=3 -D_POSIX_C_SOURCE=200809L \
        base engine results workloads profilers collective plots harness tests
}

tidy() {
    make --no-print-directory -k -j"$jobs" CONFIG=clang CC=clang tidy
}

check floors tools/check_floors.sh
check names tools/check_names.sh
check operators tools/check_operator_names.sh
check variables tools/check_variables.sh
check sizes tools/check_sizes.sh
check format format
check scripts scripts
check gcc build werror gcc
check clang build clang clang
check headers tools/check_headers.sh build/clang/gen
check cuda tools/check_cuda.sh build/clang/gen
check globals tools/check_globals.sh build/werror
check cppcheck static
check tidy tidy

if [ "$failed" ]; then
    echo "Failed:$failed"
    exit 1
fi
echo "All checks passed."
