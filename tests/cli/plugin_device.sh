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

run ridge verify active --device toy
exits 0
prints '^active +toy f32 .* ok$'
run ridge explain active --device toy -b 1
exits 0
prints 'toy_relu$'
check "its kernels are proven by the tests of operators" \
    "$build/tests/ops/run" --device toy --providers toy --filter Relu

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
