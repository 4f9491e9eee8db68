#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each variable of the environment that the program reads stands on a page. Those that every program
# knows, and those by which launchers are recognised, need none.
set -u
bad=0
names=$({
    grep -rhoE --include='*.[ch]' --include='*.cu' 'getenv\("[A-Z_]+"' base engine results workloads profilers collective plots harness
    grep -rhoE --include='*.[ch]' --include='*.cu' '#define [A-Z_]+ "RIDGE_[A-Z_]+"' collective engine harness profilers
} | sed 's/.*"\([A-Z_]*\)"/\1/' | sort -u)
for name in $names; do
    case $name in HOME | PATH | TERM | USER) continue ;; esac
    grep -qw "$name" README.md docs/*.md && continue
    echo "$name is read and stands on no page: see docs/variables.md"
    bad=1
done
test "$names" && exit $bad
