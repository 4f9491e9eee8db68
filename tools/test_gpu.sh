#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All that wants a real GPU: the rules of a device, executables on it, every kernel of the device on every case of its
# operator, every workload against its reference, counts of known work, what replays cost; own
# kernels again under compute-sanitizer, if it is there. Exit code 5 with the cause when there is no GPU.
# Usage: test_gpu.sh BUILD_FOLDER [DEVICE]
set -u
build=$1 device=${2:-cuda}
ridge=$build/ridge
logs=$build/test-logs
export RIDGE_BUILD="$build" RIDGE_PLUGIN_PATH="$build/plugins" RIDGE_CACHE="$build/test-cache.txt"
for program in jq sqlite3; do
    command -v $program >/dev/null || {
        echo "test_gpu.sh: $program is not installed: ./setup.sh test" >&2
        exit 2
    }
done
mkdir -p "$logs"
failed=0

if ! "$ridge" doctor --require cuda >"$logs/gpu_doctor.log" 2>&1; then
    echo "No test was run: there is no GPU that ridge could use." >&2
    grep -E 'cuda' "$logs/gpu_doctor.log" >&2
    exit 5
fi
sed -n '/^devices/,/^[a-z]/p' "$logs/gpu_doctor.log" | grep '^  '

# step NAME COMMAND...: the last line of its log is the result.
step() {
    log=$logs/gpu_$1.log
    shift
    began=$(date +%s)
    if "$@" >"$log" 2>&1; then verdict=ok; else verdict=FAIL; fi
    printf '%-4s %-70s %5d s\n' "$verdict" "$*" $(($(date +%s) - began))
    if [ "$verdict" = FAIL ]; then
        failed=$((failed + 1))
        grep -E '^not ok|wrong|failed|FAILED|ERROR|========= ' "$log" | head -20
        echo "     (whole log: $log)"
    fi
    tail -1 "$log"
}

step table "$build/tests/device/run" --device "$device"
step unit env RIDGE_TEST_GPU="$device" "$build/tests/unit/test_device"
step ops "$build/tests/ops/run" --device "$device" --no-fork --verbose
for floats in bf16 f16; do
    step "ops_$floats" "$build/tests/ops/run" --device "$device" --floats "$floats" --no-fork --verbose
done
for precision in f32 tf32 bf16 f16; do
    # shellcheck disable=SC2046
    step "verify_$precision" "$ridge" verify --device "$device" --precision "$precision" \
        $("$ridge" list workloads --json | jq -r '.[].name')
done
for precision in f8 i8; do
    step "verify_$precision" "$ridge" verify gemm --device "$device" --precision "$precision"
done
step counts tools/gpu_counts.sh "$ridge" "$device"
step replay tools/gpu_replay.sh "$ridge" "$device"
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck initcheck; do
        step "sanitizer_$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 \
            "$build/tests/ops/run" --providers cuda --device "$device" --no-fork
    done
else
    echo "skip compute-sanitizer: not on PATH (it comes with the CUDA toolkit)"
fi
# Refusals of what a library does not offer are well; of questions that make no sense they are ours.
if grep -HE 'CUDNN_STATUS_BAD_PARAM|CUBLAS_STATUS_INVALID_VALUE' "$logs"/gpu_*.log >"$logs/ill_formed.log"; then
    echo "FAIL $(wc -l <"$logs/ill_formed.log") questions to a library were ill-formed ($logs/ill_formed.log):"
    head -5 "$logs/ill_formed.log"
    failed=$((failed + 1))
fi
echo "$failed failed"
[ "$failed" = 0 ]
