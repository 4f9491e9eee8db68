#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that are missing (Debian, Ubuntu). Usage: ./setup.sh [run|test|check|all]
# As root, or where sudo asks for no password, it installs them; otherwise it prints the line to
# paste and exits 5. RIDGE_SETUP=print never installs.
set -u
group=${1:-run}

# One word each: a package, or "a|b": any of them counts as present, the first is installed.
run="gcc|clang make pkg-config|pkgconf libc6-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev"
run="$run libsqlite3-dev libhwloc-dev libtomlplusplus-dev g++|clang gnuplot-nox|gnuplot-qt|gnuplot-x11 libpapi-dev"
run="$run libjpeg-dev libdnnl-dev libopenblas-pthread-dev|libopenblas-openmp-dev"
run="$run libopenmpi-dev openmpi-bin libmpich-dev mpich libsimgrid-dev"
# Ridge runs without these: what they are for is then absent, and `ridge doctor` says so.
optional="gnuplot-nox|gnuplot-qt|gnuplot-x11 libpapi-dev libjpeg-dev libdnnl-dev libopenblas-pthread-dev|libopenblas-openmp-dev"
optional="$optional libopenmpi-dev openmpi-bin libmpich-dev mpich libsimgrid-dev"
test="libcmocka-dev libonnx-testdata jq sqlite3 patch"
check="clang clang-format clang-tidy cppcheck shellcheck"

case $group in
run) wanted=$run ;;
test) wanted="$run $test" ;;
check | all) wanted="$run $test $check" ;;
*)
    echo "setup.sh: unknown group \"$group\": run, test, check or all" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "setup.sh: no dpkg here. Ridge needs what these Debian packages hold: $wanted" >&2
    exit 0 # the build says what it misses
fi

# Sets $missing.
find_missing() {
    installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' 2>/dev/null | sed -n 's/^ii //p')
    missing=
    for alternatives in $wanted; do
        found=
        for package in $(echo "$alternatives" | tr '|' ' '); do
            case "
$installed
" in *"
$package
"*) found=1 ;; esac
        done
        [ "$found" ] || missing="$missing ${alternatives%%|*}"
    done
}

install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        -o Dpkg::Use-Pty=0 install "$@" >>"$log" 2>&1
}

find_missing
[ "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    as_root=none
fi
if [ "$as_root" != none ] && [ "${RIDGE_SETUP:-}" != print ]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    echo "Installing:$missing" >&2
    # shellcheck disable=SC2086
    install $missing || $as_root apt-get -qq update >>"$log" 2>&1
    find_missing
    for package in $missing; do # one by one: a name unknown here must not keep the others out
        install "$package"
    done
    find_missing
    [ "$missing" ] || exit 0
    tail -5 "$log" >&2
    echo "setup.sh: not all could be installed (is there a network?)" >&2
fi

fatal=
for package in $missing; do
    case " $optional" in *" $package"*) ;; *) fatal=1 ;; esac
done
echo "Missing packages. Paste this, then start again:" >&2
echo "    sudo apt-get update && sudo apt-get install$missing" >&2
[ "$fatal" ] && exit 5
echo "Going on without them: they are optional." >&2
exit 0
