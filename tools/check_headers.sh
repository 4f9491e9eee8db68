#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone. Usage: check_headers.sh GEN_FOLDER
set -u
bad=0
flags="-std=c11 -Wall -Wextra -Werror -I. -I$1 -D_POSIX_C_SOURCE=200809L -fsyntax-only"
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -d "$cuda/include" ] && flags="$flags -isystem $cuda/include"
for header in $(find base engine results workloads profilers collective plots harness tests -name '*.h' | LC_ALL=C sort); do
    # Headers on top of a vendor's: only where that is installed.
    needed=
    case $header in
    engine/kernels/cublaslt/* | tests/gpu/fake_cublaslt.h) needs=cublasLt.h ;;
    engine/kernels/cudnn/* | tests/gpu/fake_cudnn.h) needs=cudnn.h ;;
    profilers/plugins/cupti/* | tests/cupti_fake/state.h)
        needs=cupti.h
        needed=-Iprofilers/plugins/cupti/include
        ;;
    collective/plugins/mpi/*)
        needs=mpi.h
        needed=$(pkg-config --cflags ompi-c 2>/dev/null || pkg-config --cflags mpich 2>/dev/null)
        ;;
    # For clang's device code alone: tools/check_cuda.sh compiles it.
    tests/gpu/cuda_clang.h) continue ;;
    # CUDA C: as the host compiles it for the tests.
    engine/kernels/cuda/lib/api.h | engine/kernels/cuda/lib/cuda.h) needs=stddef.h ;;
    engine/kernels/cuda/lib/* | tests/gpu/host/cuda_*.h)
        printf '#include "%s"\n' "$header" | g++ -x c++ -std=c++20 -I. -I"$1" -fsyntax-only -Wall -Wextra \
            -Werror -Wno-missing-field-initializers -Wno-unknown-pragmas -Wno-unused-function \
            -include tests/gpu/host/cuda_host.h - || {
            echo "$header: does not compile alone"
            bad=1
        }
        continue
        ;;
    *) needs=stddef.h ;;
    esac
    # shellcheck disable=SC2086
    printf '#include <%s>\n' $needs | gcc $flags $needed -x c - 2>/dev/null || continue
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
