#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The device code of every .cu file compiles with clang, which sees other mistakes than nvcc and
# takes other liberties. It is compiled to PTX for the oldest chip that kernels are built for, behind
# declarations of our own (tests/gpu/cuda_clang.h): clang's CUDA headers want a toolkit not newer
# than clang itself, these want none. The text of inline assembly is not looked at: nvcc's part.
# Usage: check_cuda.sh GEN_FOLDER
set -u
flags="-x cuda --cuda-gpu-arch=sm_80 --cuda-device-only -nocudainc -nocudalib -std=c++14 -O0 -S -o /dev/null
    -I. -I$1 -include tests/gpu/cuda_clang.h -Wall -Wextra -Werror -Wno-unknown-cuda-version
    -Wno-missing-field-initializers -Wno-unused-function -Wno-pass-failed"

if ! command -v clang++ >/dev/null; then
    echo "skipped: no clang++ here"
    exit 0
fi
# shellcheck disable=SC2086
if ! echo '__global__ void nothing(void) {}' | clang++ $flags - 2>/dev/null; then
    echo "skipped: $(clang++ --version | head -1) compiles no CUDA C for sm_80"
    exit 0
fi
# shellcheck disable=SC2086
find engine/kernels/cuda -name '*.cu' | LC_ALL=C sort |
    xargs -n 1 -P "$(nproc 2>/dev/null || echo 1)" clang++ $flags
