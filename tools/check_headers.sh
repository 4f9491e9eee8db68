#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone. Usage: check_headers.sh GEN_FOLDER
set -u
bad=0
flags="-std=c11 -Wall -Wextra -Werror -I. -I$1 -D_POSIX_C_SOURCE=200809L -fsyntax-only"
cuda=${CUDA_HOME:-/usr/local/cuda}/include
for header in $(find base engine results workloads profilers plots harness tests -name '*.h' | LC_ALL=C sort); do
    needed=
    case $header in
    profilers/cupti/* | tests/cupti_fake/state.h)
        [ -f "$cuda/cupti.h" ] || continue
        needed="-Iprofilers/cupti/include -isystem $cuda"
        ;;
    esac
    for compiler in gcc clang; do
        # A header may define static functions that its includer uses.
        # shellcheck disable=SC2086
        printf '#include "%s"\n' "$header" |
            $compiler $flags $needed -Wno-unused-function -x c - || {
            echo "$header: does not compile alone with $compiler"
            bad=1
        }
    done
done
exit $bad
