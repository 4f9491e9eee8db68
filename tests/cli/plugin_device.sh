#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A device that a plug-in outside the tree brings (tests/plugin_device/): built as docs/plugins.md says, it is a
# device like any other, also in suites; what is missing in its table is said before anything is called.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}
quick="-b 1 --seconds 0.02 --samples 3 --interval 0 --rounds 1 --quiet --no-ceilings --no-report"

check "it is built outside the tree" make -s -C tests/plugin_device INCLUDE="$PWD" OUT="$tap_dir"
RIDGE_PLUGIN_PATH=$tap_dir
export RIDGE_PLUGIN_PATH

run ridge doctor
prints '^  toy +1\.0$'
# What the device does not say: once "0.00 GHz" and "driver for " with nothing behind it.
prints '^  toy:1 +Toy, 1 unit, 1\.0 of 1\.0 GiB free$'

run ridge verify active --device toy
exits 0
prints '^active +toy f32 .* ok$'
run ridge explain active --device toy -b 1
exits 0
prints 'toy_relu$'
prints 'Each run launches step by step: the device cannot record launches'
check "its table is proven" "$build/tests/device/run" --device toy:1
host=$build/tests/gpu/host/plugins
if [ -f "$host/cuda.so" ]; then
    check "so is that of cuda" env RIDGE_PLUGIN_PATH="$host" "$build/tests/device/run" --device cuda:1
fi
# What the proof is for: tables that do nearly what they should.
mkdir "$tap_dir/wrong"
while IFS='|' read -r change finds; do
    sed "$change" tests/plugin_device/toy.c >"$tap_dir/wrong/toy.c"
    make -s -f "$PWD/tests/plugin_device/Makefile" -C "$tap_dir/wrong" INCLUDE="$PWD"
    RIDGE_PLUGIN_PATH=$tap_dir/wrong run "$build/tests/device/run" --device toy
    exits 1
    case $build$finds in
    *asan*keeps*) complains heap-buffer-overflow ;; # found before the test looks
    *) prints "^not ok - $finds" ;;
    esac
done <<'END'
s/memset(memory, byte, bytes)/memset(memory, byte, bytes + 1)/|fill keeps to its bytes
s/memcpy(to, from, bytes)/memcpy(to, from, bytes \/ 4 * 4)/|copies bring all bytes
s/ALIGN_DEVICE, bytes/16, bytes/|memory is aligned
s/b->tv_sec - a->tv_sec/a->tv_sec - b->tv_sec - 1/|events tell time
END
check "its kernels are proven by the tests of operators" \
    "$build/tests/ops/run" --device toy --providers toy --filter Relu

# Only names of this tree were taken.
run ridge run active $quick --device toy --no-db
check "it is measured" test $code -eq 0 -o $code -eq 4
prints "^active +1 "
printf '[[workload]]\nname = "active"\nbatch = 1\ndevice = ["cpu", "toy", "toy:1", "toy:2"]\n' >"$tap_dir/s.toml"
run ridge plan "$tap_dir/s.toml" --json
exits 0
holds '[.points[].device] == ["cpu", "toy", "toy:1", "toy:2"]'
holds '[.points[] | .skip // "" | contains("there are 2 toy devices")] == [false, false, false, true]'
refuses '"toi" is not known, did you mean "toy"' ridge run active --device toi
refuses '"cpu:1" is not known, did you mean "cpu"' ridge run active --device cpu:1
RIDGE_PLUGIN_PATH=$build/plugins refuses '"toy" is none of: cpu, null, cuda ' ridge run active --device toy
# One that is not called like its plug-in was known to doctor and verify alone.
RIDGE_TOY_NAME=npu run ridge plan active --device npu:1 --json
holds '.points[0] | .device == "npu:1" and .skip == null'
RIDGE_TOY_NAME=npu run ridge verify active --device npu --providers native
exits 0
prints '^active +npu f32 .* ok$'
run ridge help --words devices
prints '^toy$'

# Each of these was a segmentation fault.
for hook in count bind wait event_elapsed; do
    RIDGE_TOY_LACKS=$hook run ridge verify active --device toy
    exits 5
    complains "device \"toy\" is not there: its device \"toy\" lacks $hook"
done
RIDGE_TOY_NAME=a:b run ridge verify active --device toy
exits 5
complains 'its device "a:b" needs a name of 1 to 31 characters and no colon'
finish
