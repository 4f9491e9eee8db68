#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A stage of Ridge's tests on a machine with a GPU and nothing else; lies in the kit as "run".
#
#     run alive       doctor, ceilings, the rules of a device, executables, ridge's own kernels in f32 and bf16, NCCL on one GPU
#     run libraries   every kernel of cuBLASLt and cuDNN, counts of known work, what replays cost
#     run networks    every workload against its reference in f32, tf32 and bf16
#     run results     the suite gpu by each precision, with all that can be counted: out/ridge.db
#     run goals       PyTorch's times beside Ridge's, row by row; compute-sanitizer on some operators
#     run report      what has been found so far
#
# A stage ends after at most 9 minutes (KIT_SECONDS); the same call goes on where it ended, and skips
# what has a verdict. Everything found lies in out/ beside this file, with the tuner's cache, and is
# packed into out.tar.gz after each call; where out/ is absent it is unpacked from there.
# Options: --device cuda:1   --only PATTERN (of steps' names, grep -E)   --again: what failed, anew
# --jobs 8: so many steps at a time of those that judge results and not times, whose tuner then learns
# nothing that is kept (machines are rented by the minute, and such steps are the host's work, mostly)
# Exit code: 0 all is well, 1 something failed, 2 the call is wrong, 5 no GPU, 75 something is left: call again.
set -u
cd "$(dirname "$0")" || exit 2
stage=${1:-} device=cuda only=. jobs=1 again=''
[ $# -gt 0 ] && shift
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=$2 && shift ;;
    --only) only=$2 && shift ;;
    --again) again=1 ;;
    --jobs) jobs=$2 && shift ;;
    *) echo "run: what is \"$1\"? $(sed -n '/^# Options/s/^# //p' "$0")" >&2 && exit 2 ;;
    esac
    shift
done
case $stage in
alive | libraries | networks | results | goals | report) ;;
*) sed -n '4,/^#$/!b;s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
case $jobs in
'' | *[!0-9]* | 0) echo "run: --jobs takes a number of steps, not \"$jobs\"" >&2 && exit 2 ;;
esac

limit=${KIT_SECONDS:-540}
began=$(date +%s)
[ -d out ] || { [ -e out.tar.gz ] && tar -xzf out.tar.gz; }
mkdir -p out/logs out/rows out/lib
steps=out/steps.tsv # STAGE STEP VERDICT SECONDS
touch $steps
: >out/left # the steps that this call leaves for the next
number=0

# ---- what the machine lacks, and CUDA's libraries ----
gzip -dkf build/tests/*/*.gz || exit 1
# A library of the kit is used only where the machine has none: others may need its newer one.
# The kit's own programs take the kit's own: sqlite3 refuses a SQLite that is not the one it was built with.
mkdir -p out/bin
for program in jq sqlite3; do
    printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$PWD/lib" "$PWD/bin/$program" >out/bin/$program
    chmod +x out/bin/$program
done
export PATH="$PWD/out/bin:$PATH"
add_missing() { # PROGRAM: links what it does not find; fails when there was nothing to add
    added=
    for library in $(LD_TRACE_LOADED_OBJECTS=1 "$1" 2>/dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p'); do
        [ -e "lib/$library" ] && [ ! -e "out/lib/$library" ] && ln -s "../../lib/$library" out/lib/ && added=1
    done
    [ "$added" ]
}
rm -f out/lib/*
export LD_LIBRARY_PATH="$PWD/out/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for program in build/ridge build/tests/ops/run build/tests/unit/test_device; do
    while add_missing "$program"; do :; done
done
for program in jq sqlite3; do
    $program --version >/dev/null 2>&1 || {
        echo "run: bin/$program does not start: $($program --version 2>&1 | head -1)" >&2
        exit 1
    }
done

# Every Python that is found is asked where its packages lie; the first with CUDA's libraries counts,
# as PyTorch's own come with it.
cuda_folders() {
    for python in python3 python "${VIRTUAL_ENV:-}/bin/python3" "${CONDA_PREFIX:-}/bin/python3" \
        /opt/*/bin/python3 /opt/*/.venv/bin/python3 /usr/local/bin/python3 /usr/bin/python3; do
        command -v "$python" >/dev/null || continue
        found=$("$python" -c 'import glob, sys
for path in sys.path:
    for folder in sorted(glob.glob((path or ".") + "/nvidia/*/lib")):
        print(folder)' 2>/dev/null)
        [ "$found" ] || continue
        echo "$python" >out/python
        echo "$found"
        break
    done
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64 /usr/local/nvidia/lib64; do
        [ -d "$folder" ] && echo "$folder"
    done
}
: >out/python
for folder in $(cuda_folders); do
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folder
done
python=$(cat out/python)
[ ! -d python ] || export PYTHONPATH="$PWD/python${PYTHONPATH:+:$PYTHONPATH}" # what the kit has for it
echo "$LD_LIBRARY_PATH" >out/library_path
[ -x /usr/local/cuda/bin/compute-sanitizer ] && PATH=$PATH:/usr/local/cuda/bin

ridge=build/ridge
export RIDGE_BUILD=build RIDGE_PLUGIN_PATH="$PWD/build/plugins" RIDGE_CACHE="$PWD/out/tuner.txt" RIDGE_TRACE="$PWD/out/trace"

# ---- steps ----
report() {
    awk -F '\t' '
        { n[$1, $3]++; stages[$1] = 1; if ($3 == "FAIL") bad = bad "  FAIL " $1 " " $2 " (out/logs/" $1 "." $2 ".log)\n" }
        END {
            printf "%-10s %5s %5s %5s\n", "stage", "ok", "FAIL", "none"
            for (s in stages) printf "%-10s %5d %5d %5d\n", s, n[s, "ok"], n[s, "FAIL"], n[s, "none"]
            printf "%s", bad
        }' $steps
}

verdict_is() { # VERDICT STEP SECONDS [LINE]
    printf '%s\t%s\t%s\t%s\n' "$stage" "$2" "$1" "$3" >>$steps
    printf '%-4s %-34s %4d s  %s\n' "$1" "$2" "$3" "${4:-}"
}

has_verdict() { # STEP
    awk -F '\t' -v s="$stage" -v n="$1" '$1 == s && $2 == n { found = 1 } END { exit !found }' $steps
}

# carry_out NAME SECONDS WHOLE COMMAND...: what SECONDS cut short has no verdict, except where these were the WHOLE stage.
carry_out() {
    name=$1 seconds=$2 whole=$3 log=out/logs/$stage.$1.log
    shift 3
    start=$(date +%s)
    timeout -k 5 "$seconds" "$@" >"$log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - start))
    line=$(grep -v '^#' "$log" | tail -1 | cut -c1-100)
    if [ $code = 0 ]; then
        verdict_is ok "$name" $took "$line"
    elif [ $code = 2 ] && grep -q 'no case and kernel match' "$log"; then
        verdict_is none "$name" $took "nothing of this kind to compute"
    elif [ $code != 124 ] && [ $code != 137 ]; then
        verdict_is FAIL "$name" $took "exit code $code: $line"
        grep -E '^not ok|wrong|failed|FAILED|ERROR|========= ' "$log" | head -5 | sed 's/^/       /'
    elif [ "$whole" = 1 ]; then
        verdict_is FAIL "$name" $took "longer than a whole stage: $line"
    else
        echo "$name" >>out/left
        printf '%-4s %-34s %4d s  the stage ended\n' cut "$name" $took
    fi
}

# begin NAME: whether a step is to be done, and with "seconds" and "whole" for carry_out.
begin() {
    echo "$1" | grep -qE -- "$only" || return 1
    ! has_verdict "$1" || return 1
    seconds=$((limit - ($(date +%s) - began)))
    if [ "$seconds" -le 0 ] || { [ "$number" -ge "$jobs" ] && [ "$seconds" -lt $((limit / 20)) ]; }; then
        echo "$1" >>out/left
        return 1
    fi
    number=$((number + 1))
    whole=$((number <= jobs))
}

# step NAME COMMAND...: alone, after all that run beside each other.
step() {
    wait
    begin "$1" || return 0
    name=$1
    shift
    carry_out "$name" "$seconds" "$whole" "$@"
}

# step_beside NAME COMMAND...: one that judges no times. A pipe holds as many lines as steps may begin.
step_beside() {
    [ "$jobs" -gt 1 ] || {
        step "$@"
        return
    }
    read -r _ <&3
    if ! begin "$1"; then
        echo >&3
        return
    fi
    (
        name=$1
        shift
        carry_out "$name" "$seconds" "$whole" env RIDGE_CACHE="$PWD/out/tuner.$name.txt" "$@" 3>&-
        rm -f "out/tuner.$name.txt"
        echo >&3
    ) &
}
if [ "$jobs" -gt 1 ]; then
    rm -f out/turns && mkfifo out/turns && exec 3<>out/turns && rm out/turns
    turns=$jobs
    while [ "$turns" -gt 0 ]; do
        echo >&3
        turns=$((turns - 1))
    done
fi

# In one process, which is fast; where that fails, one for each operator, so that a device which one
# of them loses is there for the others.
operators() { # NAME OPTION...
    # shellcheck disable=SC2016
    step_beside "$1" sh -c 'shift; build/tests/ops/run --verbose --no-fork "$@" || { code=$?
        [ $code = 2 ] && exit 2; echo "# again, each operator by itself"; build/tests/ops/run --verbose "$@"; }' \
        sh "$@" --device "$device"
}

stage_alive() {
    step peaks $ridge peaks --device "$device"
    step table build/tests/device/run --device "$device"
    step device env RIDGE_TEST_GPU="$device" build/tests/unit/test_device
    operators own_f32 --providers cuda
    operators own_bf16 --providers cuda --floats bf16
    stage_ranks
}

# Ranks by NCCL: one, and two that share the GPU as hosts of their own, whose sums count and whose times
# do not.
stage_ranks() {
    if ! $ridge doctor --require nccl >out/nccl.txt 2>&1; then
        echo "skip nccl: $(sed -n 's/^  - \(.*nccl.*\)/\1/p' out/nccl.txt | head -1)"
        return
    fi
    bench="$ridge bench collectives -b nccl --operation all --deadline 60"
    # shellcheck disable=SC2086
    step nccl_one $bench -n 1 --to 67108864
    for type in f32 bf16 i64; do
        # shellcheck disable=SC2086
        step nccl_two_$type env RIDGE_NCCL_SHARE=1 $bench -n 2 --to 1048576 --blocks 1 --block 1 --dtype $type
    done
    step nccl_train env RIDGE_NCCL_SHARE=1 $ridge scale ncf --tiny --no-tune -n 2 --backend nccl --steps 10 --deadline 60
}

stage_libraries() {
    $ridge list kernels --json | jq -r '.[] | select(.provider == "cublaslt" or .provider == "cudnn") | .name' >out/kernels
    step kernels test -s out/kernels
    while read -r kernel; do
        for floats in f32 tf32 bf16 f16; do
            operators "${kernel}_$floats" --kernel "$kernel" --floats $floats
        done
    done <out/kernels
    step counts tools/gpu_counts.sh $ridge "$device"
    step replay tools/gpu_replay.sh $ridge "$device"
}

stage_networks() {
    for workload in $($ridge list workloads --json | jq -r '.[].name'); do
        for precision in f32 tf32 bf16; do
            step_beside "${workload}_$precision" $ridge verify "$workload" --device "$device" --precision $precision
        done
    done
    for precision in f8 i8; do
        step_beside gemm_$precision $ridge verify gemm --device "$device" --precision $precision
    done
}

# A run that the stage's end cuts short goes on with the next call.
stage_results() {
    for precision in bf16 tf32 f32; do
        step results_$precision $ridge run gpu --device "$device" --precision $precision --rounds 1 --no-verify --resume --quiet \
            --threads "$(nproc)" --profilers model,cupti,cupti_pm,cupti_trace,nvml --db out/ridge.db --no-report --tag $precision
    done
}

stage_goals() {
    compare="${python:-python3} tests/gpu/compare_torch.py"
    for row in resnet50@32 googlenet@32 densenet121@32 bert_large@2 ncf@256 wide_deep@2048 nmt_encoder@128 crnn@256; do
        for precision in f32 tf32 bf16; do
            # shellcheck disable=SC2086
            step "${row}_$precision" $compare --ridge $ridge --device "$device" --no-means --precisions $precision \
                --json "out/rows/${row}_$precision.json" "$row"
        done
    done
    # shellcheck disable=SC2086
    [ -s out/left ] || step means $compare --ridge $ridge --judge out/rows/*.json
    if ! command -v compute-sanitizer >/dev/null; then
        echo "skip compute-sanitizer: not on PATH (it comes with the CUDA toolkit)"
        return
    fi
    for tool in memcheck racecheck; do
        for operator in MatMul Gemm Conv/ Attention Softmax LSTM EmbeddingBag TopK ReduceSum/; do
            step_beside "${tool}_${operator%/}" compute-sanitizer --tool $tool --error-exitcode 9 build/tests/ops/run \
                --providers cuda --device "$device" --filter $operator --no-fork
        done
    done
}

if [ "$stage" != report ]; then
    if [ "$again" ]; then
        awk -F '\t' -v s="$stage" '$1 != s || $3 != "FAIL"' $steps >$steps.new && mv $steps.new $steps
    fi
    if ! $ridge doctor --require cuda >out/doctor.txt 2>&1; then
        echo "run: there is no GPU that Ridge could use:" >&2
        grep -E 'cuda' out/doctor.txt >&2
        exit 5
    fi
    sed -n '/^devices/,/^[a-z]/p' out/doctor.txt | grep '^  '
    grep -E '^  (cublaslt|cudnn|cupti) ' out/doctor.txt
    "stage_$stage"
    wait
    failed=$(awk -F '\t' -v s="$stage" '$1 == s && $3 == "FAIL" { print $2 }' $steps | grep -cE -- "$only")
    left=$(awk 'END { print NR }' out/left)
    echo "$stage: $failed failed, $left left"
fi
report
tar -czf out.tar.gz out
[ "${left:-0}" = 0 ] || exit 75
[ "${failed:-0}" = 0 ]
