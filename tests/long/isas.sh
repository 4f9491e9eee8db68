#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program for CPUs without vector instructions, built on one that has them, did not link: roofs
# named loops that were not compiled.
. tests/lib/tap.sh

without=$(for feature in ONEDNN OPENBLAS CUDA CUBLASLT CUDNN CUPTI NCCL; do echo "WITH_$feature=0"; done)
# shellcheck disable=SC2086 # several words
runs make -s -j2 B="$tap_dir/scalar" ISAS=scalar $without "$tap_dir/scalar/ridge"
runs "$tap_dir/scalar/ridge" doctor
prints 'kernels up to  scalar'
runs "$tap_dir/scalar/ridge" verify ncf
prints 'ncf .* ok'
runs "$tap_dir/scalar/ridge" peaks --quick -t 1
prints '^fma f32 scalar '
finish
