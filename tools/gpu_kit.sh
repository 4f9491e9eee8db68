#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the folder of everything that a machine with a GPU and no package manager needs for Ridge's
# tests: programs and plug-ins without what is for debuggers, the shared libraries that such a machine
# may lack, jq and sqlite3, and tools/gpu_kit_run.sh as its program "run". It holds the layout of the
# tree, so that scripts find what they use.
# Usage: gpu_kit.sh BUILD_FOLDER KIT_FOLDER [PLUGIN...]   (default: every plug-in for GPUs)
# KIT_PYTHON=3.12 adds, by pip, what the comparison with PyTorch needs beside it, for that Python of
# the machine with the GPU.
set -eu
build=$1 kit=$2
shift 2
[ $# -gt 0 ] || set -- "$build/plugins/cuda.so" "$build/plugins/cublaslt.so" "$build/plugins/cudnn.so" \
    "$build/plugins/profilers/cupti.so" "$build/plugins/collective/nccl.so"
limit_mib=40

for program in jq sqlite3 strip; do
    command -v "$program" >/dev/null || {
        echo "gpu_kit.sh: $program is not installed: ./setup.sh test" >&2
        exit 1
    }
done
case $kit in
'' | / | . | ..) echo "gpu_kit.sh: \"$kit\" is no folder for a kit" >&2 && exit 2 ;;
esac
if [ -e "$kit" ] && [ ! -e "$kit/run" ]; then
    echo "gpu_kit.sh: $kit is there and is no kit" >&2
    exit 2
fi

# What the last stages found stays: results, the tuner's cache and their archive.
mkdir -p "$kit"
(cd "$kit" && rm -rf build lib bin tools tests)
mkdir -p "$kit/build/plugins/profilers" "$kit/build/plugins/collective" "$kit/build/tests/ops" "$kit/build/tests/device" "$kit/build/tests/unit" "$kit/lib" "$kit/bin" \
    "$kit/tools" "$kit/tests/gpu" "$kit/tests/oracle"

bare() { # FILE COPY
    strip -o "$2" "$1"
}
bare "$build/ridge" "$kit/build/ridge"
bare "$build/tests/ops/run" "$kit/build/tests/ops/run"
bare "$build/tests/device/run" "$kit/build/tests/device/run"
bare "$build/tests/unit/test_device" "$kit/build/tests/unit/test_device"
for plugin; do
    [ -e "$plugin" ] || {
        echo "gpu_kit.sh: $plugin is not built (make says which library it lacks)" >&2
        exit 1
    }
    case $plugin in
    */collective/*) bare "$plugin" "$kit/build/plugins/collective/$(basename "$plugin")" ;;
    */profilers/* | */cupti*) bare "$plugin" "$kit/build/plugins/profilers/$(basename "$plugin")" ;;
    *) bare "$plugin" "$kit/build/plugins/$(basename "$plugin")" ;;
    esac
done
bare "$(command -v jq)" "$kit/bin/jq"
bare "$(command -v sqlite3)" "$kit/bin/sqlite3"
cp tools/gpu_counts.sh tools/gpu_replay.sh "$kit/tools/"
cp tests/gpu/compare_torch.py tests/gpu/torch_of_onnx.py "$kit/tests/gpu/"
cp tests/oracle/turns.py "$kit/tests/oracle/"
cp tools/gpu_kit_run.sh "$kit/run"

# Everything that these open, except the C library, which must be the machine's own.
find "$kit/build" "$kit/bin" -type f -exec ldd {} + | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util)\.so\.[0-9])$' |
    while read -r library; do
        bare "$library" "$kit/lib/$(basename "$library")"
    done

# Each test program holds all kernels of the CPU: "run" unpacks them.
gzip -9 -f "$kit"/build/tests/*/*

if [ "${KIT_PYTHON:-}" ]; then
    rm -rf "$kit/python"
    python3 -m pip install --quiet --no-compile --target "$kit/python" --python-version "$KIT_PYTHON" --only-binary :all: \
        --no-deps 'onnx==1.17.*' 'protobuf==5.*' ml_dtypes typing_extensions
    rm -rf "$kit/python/onnx/backend/test" "$kit/python/onnx/test"
fi

mib=$(find "$kit/build" "$kit/lib" "$kit/bin" "$kit/tools" "$kit/tests" "$kit/run" -type f -exec stat -c %s {} + |
    awk '{ sum += $1 } END { printf "%.1f", sum / 1048576 }')
echo "$kit: $mib MiB"
if awk -v mib="$mib" -v limit=$limit_mib 'BEGIN { exit mib < limit }'; then
    echo "gpu_kit.sh: more than $limit_mib MiB; fewer chips make it smaller (CUDA_ARCHS=90)" >&2
    exit 1
fi
