#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Published figures of distributed training, simulated. ResNet-50, 64 images a V100, 4 hosts of 8, no
# overlap, f16, connections of 10 of 30 Gbit/s (aliyun/alibabacloud-aiacc-demo): 91.8 ms a step of
# several streams between hosts, 154.8 ms of one flat ring. 512 P100, 8 a host of 25 Gbit/s: 462
# times one (0.902 of ideal). Ten minutes at most for each.
. tests/lib/tap.sh
export TMPDIR="$tap_dir"
if [ ! -e "${RIDGE_BUILD:-build/release}/plugins/collective/simulated/ranks.so" ]; then
    echo "skipped: this build has no SimGrid"
    exit 77
fi
network() { # link_gbit_s
    printf 'ranks_per_host = 8\nlink_gbit_s = %s\nlink_latency_us = 25\nflow_gbit_s = 10\n' "$1" >"$tap_dir/network.toml"
}
simulate() { # ranks, options
    began=$(date +%s)
    runs ridge scale resnet50 -b 8 -t 1 --platform "$tap_dir/network.toml" --wire f16 --json --simulate "$@"
    took=$(($(date +%s) - began))
    check "$took s, at most 600" [ $took -le 600 ]
    jq -r '.points[-1] | "# \(.ranks) ranks: step \(.step_s) s, exposed \(.exposed_s) s, efficiency \(.efficiency)"' "$output"
}

network 30
simulate 32 --no-overlap -a hierarchical --lanes 4 --step-time 0.059443
several=$(jq '.points[-1].step_s' "$output")
holds '.points[-1].step_s / 0.0918 - 1 | fabs < 0.05'
simulate 32 --no-overlap -a ring --lanes 1 --unit 67108864 --step-time 0.063272
holds ".points[-1].step_s / $several / (154.8 / 91.8) - 1 | fabs < 0.05"

network 25
simulate 512 --steps 1 -a hierarchical --lanes 4 --step-time 0.24
holds '.points[-1].efficiency >= 0.89'
finish
