#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four network namespaces with links of 200 Mbit/s, Open MPI across them: our ring of 8 MB at 95 % of
# the line's rate or more, no slower than the library's own by more than 5 %; f16 in half the bytes.
# Needs root, for the namespaces; each has a host name of its own, since Open MPI would otherwise
# take them for one machine.
. tests/lib/tap.sh
skip() {
    echo "skipped: $1"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "namespaces need root"
for program in ip tc mpirun.openmpi jq; do
    command -v $program >/dev/null || skip "no $program"
done
[ -e "${RIDGE_BUILD:-build/release}/plugins/collective/openmpi.so" ] || skip "no Open MPI in this build"
name=rdg$$
mbit=200 count=4
program=$(readlink -f "$RIDGE")

clean() {
    for k in 0 1 2 3; do
        ip netns del "$name$k" 2>/dev/null
        rm -rf "/etc/netns/$name$k"
    done
    ip netns del "${name}s" 2>/dev/null
    rm -rf "$tap_dir"
}
trap clean EXIT
trap "exit 1" INT TERM # and by that clean
ip netns add "${name}s" 2>/dev/null || skip "no namespaces allowed"
{
    ip netns exec "${name}s" ip link add bridge type bridge &&
        ip netns exec "${name}s" ip link set bridge up
} 2>/dev/null || skip "no bridge in a namespace"

# The host's end and the switch's end of a link, each at the line's rate.
shape() {
    ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "${mbit}mbit" burst 64kb latency 50ms
}
for k in 0 1 2 3; do
    ip netns add "$name$k"
    ip netns exec "${name}s" ip link add "port$k" type veth peer name eth0 netns "$name$k"
    ip netns exec "${name}s" ip link set "port$k" master bridge up
    ip netns exec "$name$k" ip link set lo up
    ip netns exec "$name$k" ip link set eth0 up
    ip netns exec "$name$k" ip addr add "10.98.0.$((k + 1))/24" dev eth0
    if ! shape "$name$k" eth0 || ! shape "${name}s" "port$k"; then
        skip "no token buckets"
    fi
    mkdir -p "/etc/netns/$name$k"
    { echo "127.0.0.1 localhost"; for j in 0 1 2 3; do echo "10.98.0.$((j + 1)) $name$j"; done; } \
        >"/etc/netns/$name$k/hosts"
    echo "$name$k slots=1"
done >"$tap_dir/hosts"

# What mpirun takes for ssh: HOST COMMAND...
cat >"$tap_dir/enter" <<EOF
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec ip netns exec "\$host" unshare -u sh -c "hostname \$host; \$*"
EOF
chmod +x "$tap_dir/enter"

over_network() { # words for ridge
    run ip netns exec "${name}0" unshare -u sh -c 'hostname "$0"; exec "$@"' "${name}0" \
        timeout 300 mpirun.openmpi --allow-run-as-root -np "$count" --hostfile "$tap_dir/hosts" \
        --map-by node --bind-to none --mca plm_rsh_agent "$tap_dir/enter" \
        --mca oob_tcp_if_include 10.98.0.0/24 --mca btl tcp,self \
        --mca btl_tcp_if_include 10.98.0.0/24 --mca pml ob1 --mca mpi_yield_when_idle 1 \
        -x RIDGE_PLUGIN_PATH "$program" "$@" --json
    tap_what="over the network: $*"
}
eight_megabytes() { # options of bench
    over_network bench collectives --from 8000000 --to 8000000 --block 1 --blocks 5 "$@"
}
RIDGE_PLUGIN_PATH=$(readlink -f "${RIDGE_BUILD:-build/release}/plugins")
export RIDGE_PLUGIN_PATH

eight_megabytes -a ring
exits 0
holds '.ranks == 4 and all(.results[] | select(.algorithm); .wrong == 0)'
# busbw counts payload; a frame of 1514 bytes carries 1448 of them.
holds "[.results[] | select(.algorithm == \"ring\") | .busbw_bytes_s] | max > 0.95 * $mbit * 1e6 / 8 * 1448 / 1514"
jq -r '.results[] | select(.algorithm) | "# ring: \(.time_s) s, \(.busbw_bytes_s * 8e-6) Mbit/s"' "$output"
ring=$(jq '[.results[] | select(.algorithm == "ring") | .time_s] | min' "$output")
eight_megabytes -a ring --wire f16
exits 0
holds "[.results[] | select(.algorithm == \"ring\") | .time_s] | min < 0.55 * $ring"
eight_megabytes -a library_blocking
exits 0
holds "[.results[] | select(.algorithm == \"library_blocking\") | .time_s] | min > $ring / 1.05"
jq -r '.results[] | select(.algorithm) | "# library: \(.time_s) s"' "$output"

# A training whose steps compute for longer than its 1.5 MB of gradients need, 60 ms: of their way 80 % or more is
# hidden. The batch makes computing long; without overlap the same steps stand still for all of it. Two ranks, for
# ranks that share a CPU come late by turns, which counts as moving.
count=2
training() { # options of scale
    over_network scale resnet50 --tiny -t 1 --no-tune --batch 768 --steps 8 --unit 65536 -a ring "$@"
    jq -r '.points[] | "# step \(.step_s) s, computing \(.computing_s), moving \(.communication_s), exposed \(.exposed_s), " +
        "hidden \(100 * .hidden_s / .communication_s) %, on the line at least \(.bytes_sent * 8e-6 / '$mbit') s"' "$output"
}
training
exits 0
holds '.backend == "openmpi" and .points[0].ranks == 2'
holds '.points[0].computing_s > .points[0].communication_s'
holds '.points[0] | .hidden_s >= 0.8 * .communication_s'
step=$(jq '.points[0].step_s' "$output")
training --no-overlap
exits 0
holds '.points[0] | .exposed_s >= 0.95 * .communication_s'
echo "# $(jq "100 * (1 - $step / .points[0].step_s)" "$output") % of a step's time saved"
finish
