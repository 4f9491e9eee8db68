#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the doctor says of GPUs that are there, are not, or have an old driver, and of the libraries:
# the CUDA plug-in over the host (tests/gpu/host/), a made CUPTI and NVML (tests/cupti_fake/).
. tests/lib/tap.sh

build=${RIDGE_BUILD:-build/release}
if [ ! -f "$build/tests/gpu/host/plugins/cuda.so" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi
RIDGE_PLUGIN_PATH=$build/tests/gpu/host/plugins:$build/plugins
export RIDGE_PLUGIN_PATH

runs ridge doctor --require cuda
prints 'cuda:0 +Host GPU, 132 units at 1.98 GHz'
prints 'cuda:1 +Host GPU'
run ridge doctor --json
holds '.devices[] | select(.name == "cuda") | .count == 2 and .reason == null'

# not_used NAME=VALUE TEXT: with that in the environment the device is not used, for that reason.
not_used() {
    run env "$1" "$RIDGE" doctor --require cuda
    exits 5
    prints "device cuda is not used: .*$2"
    prints '^  - cuda is required and not there'
    run env "$1" "$RIDGE" verify ncf --device cuda
    exits 5
    complains "$2"
}
not_used RIDGE_HOST_GPUS=0 'no GPU is: check nvidia-smi, CUDA_VISIBLE_DEVICES'
not_used RIDGE_HOST_DRIVER=0 'no CUDA driver .libcuda.so.1 cannot be opened.: install'
not_used RIDGE_HOST_DRIVER=12020 'too old: it serves CUDA 12.2, this plug-in needs [0-9.]+: update'

not_used RIDGE_HOST_COUNT=802 'cudaErrorSystemNotReady.*start the fabric manager .*nvidia-fabricmanager'
not_used RIDGE_HOST_COUNT=803 'cudaErrorSystemDriverMismatch.*reboot after an update of the driver'
not_used RIDGE_HOST_COUNT=804 'cudaErrorCompatNotSupportedOnDevice.*cuda-compat.* works on data-centre cards only'

# A library that is missing costs itself only.
runs env RIDGE_NVML=/nonexistent.so "$RIDGE" doctor --json
holds '.profilers[] | select(.name == "nvml") | .available == false and (.reason | contains("install NVIDIA"))'
if [ -f "$build/tests/cupti_fake/fake.so" ]; then
    run env RIDGE_CUPTI=/nonexistent.so "$RIDGE" doctor --json
    holds '.profilers[] | select(.name == "cupti") | .available == false and (.reason | contains("/nonexistent.so"))'
    made=$PWD/$build/tests/cupti_fake/fake.so
    run env RIDGE_CUPTI="$made" RIDGE_LIBCUDA="$made" RIDGE_NVML="$made" "$RIDGE" doctor --json
    holds '[.profilers[] | select(.name | test("^(cupti|nvml)")) | .available] == [true, true, true, true]'
    holds '.cupti.built >= 130000 and .cupti.opened == .cupti.built'
    run env RIDGE_CUPTI="$made" RIDGE_LIBCUDA="$made" "$RIDGE" doctor
    prints '^  CUPTI +version 13[0-9]{4}, built for 13[0-9]{4}$'
fi
# cuDNN compiles some engines at run time. Its plug-in wants a driver's library: the toolkit's stub.
stub=${CUDA_HOME:-/usr/local/cuda}/lib64/stubs/libcuda.so
if [ -f "$build/plugins/cudnn.so" ] && [ -e "$stub" ] && [ "${RIDGE_TEST_VENDORS:-1}" != 0 ]; then
    ln -s "$stub" "$tap_dir/libcuda.so.1"
    paths=$tap_dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    runs env LD_LIBRARY_PATH="$paths" RIDGE_NVRTC=/nonexistent.so "$RIDGE" doctor
    prints 'cudnn +[0-9.]+ without libnvrtc'
    prints 'cudnn works without libnvrtc[.]so[.][0-9]+: install it'
fi
finish
