#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ridge checkpoint on two checkpoints of one training, a step apart.
. tests/lib/tap.sh
seeds=tests/fuzz/seeds/checkpoint
two=$seeds/adam_step_2
three=$seeds/adam_step_3

runs ridge checkpoint show "$two"
prints '^workload +linear:width=3$'
prints '^recipe +adam, rate 0.125$'
prints '^hidden.weight +F32 +\[3,2\] '

runs ridge checkpoint show "$two" --json
holds '.notes.step == "2" and .notes.seed == "7" and .notes.format == "ridge checkpoint 1"'
holds '.tensors | map(.name) == ["step", "hidden.weight", "out.weight", "hidden.weight.adam0",
    "hidden.weight.adam1", "out.weight.adam0", "out.weight.adam1"]'
holds '.tensors[0] | .type == "I64" and .shape == [] and .mean == 2 and .bytes == 8'
holds 'all(.tensors[]; .not_finite == 0 and .largest > 0)'

runs ridge checkpoint diff "$two" "$two"
prints '^7 of 7 tensors are the same, bit for bit'
run ridge checkpoint diff "$two" "$three"
exits 1
prints '^step: 2 and 3$'
prints '^hidden.weight +6 of 6 '
run ridge checkpoint diff "$two" "$three" --json
exits 1
holds '.different == 7 and .worst > 0.3 and .worst < 1'
holds '(.tensors[0].relative - 1 / 3) | fabs < 1e-12'
run ridge checkpoint diff "$two" "$three" --tolerance 0.2
exits 1
run ridge checkpoint diff "$two" "$three" --tolerance 0.2 --json
exits 1
holds '.different < 7'
runs ridge checkpoint diff "$two" "$three" --tolerance 0.9

# One byte of a weight, and the end of the file.
cp "$two" "$tap_dir/damaged"
printf '\377' | dd of="$tap_dir/damaged" bs=1 seek=800 conv=notrunc 2>/dev/null
refuses 'damaged: its checksum is [0-9a-f]{16}, that of its contents [0-9a-f]{16}; go back' \
    ridge checkpoint show "$tap_dir/damaged"
prints_nothing
head -c 860 "$two" >"$tap_dir/short"
refuses 'short: byte [0-9]+: .* lies at .*: the file is damaged or cut off' \
    ridge checkpoint diff "$two" "$tap_dir/short"
prints_nothing
: >"$tap_dir/empty"
refuses 'empty: no file of safetensors' ridge checkpoint show "$tap_dir/empty"
refuses 'it lacks the note "format"' ridge checkpoint show "$seeds/no_notes"
refuses 'absent' ridge checkpoint show "$tap_dir/absent"
refuses 'show FILE' ridge checkpoint look "$two"
run ridge checkpoint diff "$two"
exits 2
# 0 is the default, and a distance may be larger than the norm.
run ridge checkpoint diff "$two" "$three" -t 0
exits 1
runs ridge checkpoint diff "$two" "$two" -t 0
runs ridge checkpoint diff "$two" "$three" --tolerance 1.5
run ridge checkpoint diff "$two" "$three" --tolerance -1
exits 2

finish
