#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does comparing tell the truth? A test-only plug-in does the work of its kernel N times, so one program
# can be made slower than another by a known share. A/A pairs must raise no alarm, 5 % must be found.
# RIDGE_TRIALS_AA (200), RIDGE_TRIALS (40), RIDGE_PAIRS (5): how many. A pair takes 3 s, which is its
# budget of samples: starting both programs takes 0.02 s of it. So 280 trials are 70 minutes; a look
# at less is RIDGE_SECONDS=0.5 per pair. The machine should be quiet, and the rates are printed.
. tests/lib/tap.sh
model=/usr/share/libonnx-testdata/data/node/test_relu/model.onnx
sample=${RIDGE_BUILD:-build/release}/tests/plugin_sample/sample.so
if [ ! -f "$model" ] || [ ! -f "$sample" ]; then
    echo "needs libonnx-testdata and the sample plug-in"
    exit 77
fi
mkdir -p "$tap_dir/plugins"
cp "$sample" "$tap_dir/plugins/sample.so"
program=$(realpath "$RIDGE")

# A program whose kernel works so many times.
make_side() { # name, repeats
    printf '#!/bin/sh\nexec env RIDGE_PLUGIN_PATH=%s RIDGE_SAMPLE_REPEAT=%s %s "$@"\n' \
        "$tap_dir/plugins" "$2" "$program" >"$tap_dir/$1"
    chmod +x "$tap_dir/$1"
}
make_side plain 40000
make_side same 40000
make_side slower2 40800
make_side slower5 42000

# Verdicts of so many trials: "regressed improved unchanged inconclusive".
trials() { # count, head
    for trial in $(seq 1 "$1"); do
        : "$trial"
        "$RIDGE" run --interleave --repeat "${RIDGE_PAIRS:-5}" "$tap_dir/plain" "$tap_dir/$2" "$model" \
            --seconds "${RIDGE_SECONDS:-3}" --providers sample --threads 1 --json 2>/dev/null | jq -r '.[0].verdict'
    done | sort | uniq -c | awk '{ n[$2] = $1 }
        END { print n["regressed"] + 0, n["improved"] + 0, n["unchanged"] + 0, n["inconclusive"] + 0 }'
}

code=0
aa=${RIDGE_TRIALS_AA:-200}
# shellcheck disable=SC2046
set -- $(trials "$aa" same)
[ $((100 * ($1 + $2))) -le "$aa" ] && [ $(($1 + $2 + $3 + $4)) = "$aa" ]
tap_result $? "$aa A/A comparisons: $1 regressed, $2 improved, $3 unchanged, $4 inconclusive"

count=${RIDGE_TRIALS:-40}
# shellcheck disable=SC2046
set -- $(trials "$count" slower5)
[ $((100 * $1)) -ge $((95 * count)) ]
tap_result $? "5 % slower, $count trials: $1 regressed, $2 improved, $3 unchanged, $4 inconclusive"

# 2 % is the limit of an alarm: it may be found or not, but must never be called an improvement.
# shellcheck disable=SC2046
set -- $(trials "$count" slower2)
[ "$2" = 0 ]
tap_result $? "2 % slower, $count trials: $1 regressed, $2 improved, $3 unchanged, $4 inconclusive"
finish
