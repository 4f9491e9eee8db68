#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What once gave zeros or NaN with exit code 0: indices outside their axis, contents of another shape.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}
check "the models are written" "$build/tests/unit/test_onnx_semantics" --write "$tap_dir"

# i64s FILE NUMBER...: a vector of small numbers as .npy
i64s() {
    file=$1
    shift
    head="{'descr': '<i8', 'fortran_order': False, 'shape': ($#,), }"
    printf '\223NUMPY\001\000v\000%-117s\n' "$head" >"$file"
    for number; do
        if [ "$number" -lt 0 ]; then
            # shellcheck disable=SC2059
            printf "\\$(printf '%03o' $((256 + number)))\377\377\377\377\377\377\377" >>"$file"
        else
            # shellcheck disable=SC2059
            printf "\\$(printf '%03o' "$number")\000\000\000\000\000\000\000" >>"$file"
        fi
    done
}

i64s "$tap_dir/good.npy" 0 4 -5
i64s "$tap_dir/high.npy" 0 4 5
i64s "$tap_dir/low.npy" -6 1 2
for providers in native reference; do
    runs ridge infer "$tap_dir/gather_at.onnx" -i "i=$tap_dir/good.npy" -p $providers
    prints '^y +f32\[3,4\]'
    refuses 'Gather node "look_up": index 5 \(element 2 of input 1\) is outside axis 0 .*size 5' \
        ridge infer "$tap_dir/gather_at.onnx" -i "i=$tap_dir/high.npy" -p $providers
    prints_nothing
    refuses 'node "look_up": index -6 \(element 0' \
        ridge infer "$tap_dir/gather_at.onnx" -i "i=$tap_dir/low.npy" -p $providers
done
# Indices that another node computes.
refuses 'Gather node "look_up": index 5 \(element 1' ridge infer "$tap_dir/gather_of_sum.onnx" -i "i=$tap_dir/good.npy"

refuses 'input "x": its contents are i64, the file says f32' \
    ridge infer "$tap_dir/gather_at.onnx" -i "x=$tap_dir/good.npy"
refuses 'input "i": its contents have the shape \[3\], the file says \[N\]' \
    ridge infer "$tap_dir/gather_at.onnx" --dim N=2 -i "i=$tap_dir/good.npy"

# What is not computed as it was asked must not look as if it were.
refuses 'precision "f16": ncf cannot run in it on the CPU' ridge infer ncf --precision f16
refuses 'precision "tf32": .*gather_at.onnx cannot run in it on the CPU' \
    ridge infer "$tap_dir/gather_at.onnx" --precision tf32
refuses '\-\-dim is for files; a workload.s sizes are its parameters' ridge infer ncf --dim N=2

for name in two_inputs two_outputs two_initializers gather gather_nd scatter_nd scatter_elements; do
    refuses "$name.onnx: " ridge infer "$tap_dir/$name.onnx" --dim a=1 --dim b=1
done
# Judged by its size, at once.
run timeout 20 "$RIDGE" infer "$tap_dir/wide_stride.onnx"
exits 5
complains 'ConvTranspose: .* 4.9e\+13 positions, which take 1.96e\+05 GB'
for name in pad tile resize expand constant_of_shape; do
    refuses ' [0-9.e+]+ GB' timeout 20 "$RIDGE" infer "$tap_dir/$name.onnx"
done
# What the format allows and this machine does not hold.
if [ "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" -lt 160000000 ]; then
    for command in infer explain verify; do
        run timeout 20 "$RIDGE" $command "$tap_dir/stride_of_160_gb.onnx"
        exits 5
        complains 'needs [0-9.e+]+ GB of memory, [0-9.e+]+ GB are free'
    done
fi
finish
