#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Can a library be used? Compiles and links three lines; appends the answer to the files the Makefile
# reads and keeps the log. Usage: probe.sh OUT NAME auto|0|1 HEADER CALL "FLAGS" PACKAGE PLUGIN
# CC comes from the environment. OUT is a folder: features.mk, absent_plugins.inc, probe.NAME.log.
set -u
out=$1 name=$2 mode=$3 header=$4 call=$5 flags=$6 package=$7 plugin=$8
log=$out/probe.$name.log

absent() { # reason
    echo "HAVE_$name :=" >>"$out/features.mk.new"
    echo "ABSENT(\"$plugin\", \"$1\")" >>"$out/absent_plugins.inc.new"
    printf '  %-10s no   %s\n' "$plugin" "$1" >&2
}

if [ "$mode" = 0 ]; then
    absent "switched off when building (WITH_$name=0)"
    exit 0
fi
printf '#include <%s>\nint main(void) { return (%s) == 0; }\n' "$header" "$call" >"$out/probe.$name.c"
# shellcheck disable=SC2086
if (set -x; $CC -o "$out/probe.$name" "$out/probe.$name.c" $flags) >"$log" 2>&1; then
    echo "HAVE_$name := 1" >>"$out/features.mk.new"
    printf '  %-10s yes\n' "$plugin" >&2
    exit 0
fi
fix="apt-get install $package"
if [ "$mode" = 1 ]; then
    cat "$log" >&2
    echo "WITH_$name=1 but $header or its library cannot be used: $fix" >&2
    exit 1
fi
absent "$header or its library was not found when building: $fix, then make (log: $log)"
