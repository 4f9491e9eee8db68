#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The machine code of ridge's own kernels for the GPU, as cuobjdump and nvdisasm print it (of the CUDA
# toolkit; RIDGE_CUOBJDUMP names another cuobjdump, whose folder has nvdisasm): tensor cores only in
# kernels that are named for them, so that nothing in f32 is counted as their work; no local memory
# where values should be in registers, which nvcc's table of spills does not show where it comes of
# an index that is known at run time only.
# shellcheck disable=SC2016 # awk, not the shell, reads these dollars
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
objects=$build/pic/engine/kernels/cuda
cuobjdump=${RIDGE_CUOBJDUMP:-$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}
if [ ! -e "$build/cuda_usage.txt" ] || [ ! -x "$cuobjdump" ]; then
    echo "skipped: no CUDA toolkit when this was built, or no cuobjdump (RIDGE_CUOBJDUMP)"
    exit 77
fi
PATH=$(dirname "$cuobjdump"):$PATH
chip=sm_90
sed -n 's/.* for .\(sm_[0-9]*\).*/\1/p' "$build/cuda_usage.txt" | grep -qx $chip ||
    chip=$(sed -n 's/.* for .\(sm_[0-9]*\).*/\1/p' "$build/cuda_usage.txt" | head -1)

# Lines "FILE KERNEL TENSOR LOCAL MOVES UNWAITED": how many instructions of each sort.
for object in "$objects"/*.o "$objects"/roofs/*.o; do
    "$cuobjdump" -arch "$chip" -sass "$object" 2>"$errors" | awk -v file="$(basename "$object" .o)" -v roof="${object##*/roofs/*}" -v chip=$chip '
        function put() {
            if (kernel)
                print file, kernel, tensor + 0, spilled + 0, moves + 0, \
                    roof == "" || chip == "sm_80" ? 0 : unwaited + !waits
        }
        /Function :/ { put(); kernel = $3; tensor = spilled = moves = unwaited = waits = 0 }
        / ACQBULK/ { waits = 1 }
        / (LDG|STG|LDGSTS|LD|ST|ATOM|ATOMG|RED|REDG)[. ]/ && !waits { unwaited++ }
        / (HMMA|IMMA|DMMA|QMMA|OMMA|HGMMA|IGMMA|QGMMA|UTC[A-Z]*MMA)[. ]/ { tensor++ }
        / (LDL|STL)[. ]/ { spilled++ }
        / HFMA2\.MMA/ { moves++ }
        END { put() }'
done >"$tap_dir/kernels"
check "kernels of $chip" sh -c "[ \"\$(wc -l <'$tap_dir/kernels')\" -gt 250 ]"
check "tensor cores where they are meant" awk '
    $3 && $2 ~ /matmul_tensor|conv_few|decoder_tensor|attention_tensor|lstm_cluster|mma_chains/ { n++ } END { exit n < 23 }' "$tap_dir/kernels"
check "and nowhere else" awk '
    $3 && $2 !~ /matmul_tensor|conv_few|decoder_tensor|attention_tensor|lstm_cluster|mma_chains/ { print "# " $0; bad = 1 } END { exit bad }' "$tap_dir/kernels"
# In chains of operations sinf and cosf have it for arguments beyond 105615, ten instructions in all.
# Products of integers, which no workload has, spill four registers on sm_90.
check "no local memory but in segments_images, matmul_bytes, and for sines of large arguments" awk '
    $4 && $2 !~ /segments_images/ && !($2 ~ /matmul_bytes/ && $4 <= 4) && !($2 ~ /elementwise_chain/ && $4 <= 10) { print "# " $0; bad = 1 } END { exit bad }' "$tap_dir/kernels"
# KERNEL_BEGIN is ACQBULK there; roofs have none, and are not launched early.
check "each kernel waits for those before it ahead of all memory" awk '
    $6 { print "# touches memory before it waits, or never waits: " $0; bad = 1 } END { exit bad }' "$tap_dir/kernels"
awk '{ moves += $5 } END { print "# HFMA2.MMA in kernels of all types, most of them moves: " moves }' "$tap_dir/kernels"
awk '$4 { print "# local memory: " $0 }' "$tap_dir/kernels"
finish
