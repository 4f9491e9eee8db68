#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kit for a machine with a GPU and nothing else (tools/gpu_kit.sh) with the plug-in over the host
# (tests/gpu/host/) in place of the real one. Where this system permits it, the kit runs in a root
# folder that has the C library, a shell and a few basic programs, and nothing else.
. tests/lib/tap.sh
build=${RIDGE_BUILD:-build/release}
if [ ! -f "$build/tests/gpu/host/plugins/cuda.so" ]; then
    echo "skipped: the plug-in over the host is not built under sanitizers"
    exit 77
fi

bare=$tap_dir/bare
kit=$bare/kit
mkdir -p "$bare/bin" "$bare/tmp" "$bare/dev" "$bare/lib64"
nccl=
[ ! -f "$build/tests/nccl_fake/libnccl.so.2" ] || nccl=$build/plugins/collective/nccl.so
runs tools/gpu_kit.sh "$build" "$kit" "$build/tests/gpu/host/plugins/cuda.so" $nccl
prints 'kit: [0-9.]+ MiB$'
check "a second time over the first" tools/gpu_kit.sh "$build" "$kit" "$build/tests/gpu/host/plugins/cuda.so" $nccl
check "protobuf, SQLite and hwloc are there" ls "$kit/lib/libprotobuf-c.so.1" "$kit/lib/libsqlite3.so.0" "$kit/lib/libhwloc.so.15"
check "the C library is not" sh -c "! ls '$kit'/lib/libc.so* '$kit'/lib/ld-* 2>/dev/null"
check "nothing for debuggers" sh -c "! readelf -SW '$kit/build/ridge' | grep -q debug_info"
run tools/gpu_kit.sh "$build" "$tap_dir/new" /nonexistent/cuda.so
exits 1
complains 'cuda.so is not built'
refuses 'tests is there and is no kit' tools/gpu_kit.sh "$build" tests

# ---- the bare root ----
take() { # FILE: with what it opens, at the same places
    for file in "$1" $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
        mkdir -p "$bare$(dirname "$file")"
        [ -e "$bare$file" ] || cp -L "$file" "$bare$file"
    done
}
for program in sh awk cat chmod cp cut date dirname env grep gzip head ln ls mkdir mkfifo mktemp mv rm sed sleep sort tail tar timeout touch tr; do
    take "$(command -v "$program")"
    [ -e "$bare/bin/$program" ] || ln -s "$(command -v "$program")" "$bare/bin/$program"
done
if [ "$(id -u)" = 0 ]; then mknod -m 666 "$bare/dev/null" c 1 3 2>/dev/null; fi
[ -e "$bare/dev/null" ] || : >"$bare/dev/null"
kit_at=/kit
if chroot "$bare" /bin/sh -c : 2>/dev/null; then
    inside="chroot $bare /bin/env -i PATH=/bin"
elif unshare -r chroot "$bare" /bin/sh -c : 2>/dev/null; then
    inside="unshare -r chroot $bare /bin/env -i PATH=/bin"
else
    echo "# no other root is permitted here: without variables, with few programs"
    inside="env -i PATH=$bare/bin"
    kit_at=$kit
fi
small="RIDGE_HOST_UNITS=1 RIDGE_HOST_CACHE=300000 RIDGE_HOST_GPUS=1 RIDGE_HOST_WATCH=0"
stage() {
    run $inside $small $variables "$kit_at/run" "$@"
}
variables=

stage
exits 2
complains '^    run alive '
stage alive --only 'device'
exits 0
prints '^ok   device +[0-9]+ s'
prints '^alive +1 +0 +0$'
stage alive --only '^table$'
exits 0
prints '^ok   table +[0-9]+ s +[0-9]+ passed, 0 failed$'
check "libraries that this root lacks" test -h "$kit/out/lib/libprotobuf-c.so.1"
check "and none that it has" test ! -e "$kit/out/lib/libc.so.6"
stage alive --only 'device'
exits 0
check "what has a verdict is not done again" sh -c "! grep -q '^ok ' '$output'"

# A stage that ends before its work does: what is left is said, and done by the next call.
rm -rf "$kit/out" "$kit/out.tar.gz"
variables="KIT_SECONDS=6"
stage alive --only 'device|own_f32'
exits 75
prints '^ok   device'
prints '^cut  own_f32'
prints '^alive: 0 failed, 1 left'
stage alive --only 'device|own_f32'
exits 1
prints '^FAIL own_f32 .*longer than a whole stage'
variables=

# What fails stays failed until it is asked for again, also from the archive alone.
variables="RIDGE_HOST_FAIL=graph_launch:1"
stage networks --only '^wide_deep_bf16'
exits 1
prints '^FAIL wide_deep_bf16 +[0-9]+ s  exit code 3'
variables=
rm -rf "$kit/out"
stage networks --only '^wide_deep_bf16'
exits 1
prints '^  FAIL networks wide_deep_bf16 .out/logs/networks.wide_deep_bf16.log'
stage networks --only '^wide_deep_bf16' --again
exits 0
prints '^ok   wide_deep_bf16'

# Several steps at a time, whose tuner's caches are not kept.
stage networks --only '^wide_deep_(f32|tf32)$' --jobs 2
exits 0
for name in wide_deep_f32 wide_deep_tf32; do prints "^ok   $name"; done
prints '^networks: 0 failed, 0 left'
check "no cache of theirs stays" sh -c "! ls '$kit'/out/tuner.*.txt 2>/dev/null"
stage networks --jobs many
exits 2
complains '.--jobs takes a number of steps, not .many.'
stage libraries --only kernels
exits 1
prints '^FAIL kernels'

# CUDA's libraries in the folders of a Python's packages; PyTorch's rows one by one, then their means.
mkdir -p "$bare/packages/nvidia/cudnn/lib" "$bare/opt/any/bin"
cat >"$bare/bin/python3" <<'END'
#!/bin/sh
case $* in
*-c*) echo /packages/nvidia/cudnn/lib && echo /packages/nvidia/nccl/lib ;;
*--judge*) echo "judged with $# arguments, packages in $PYTHONPATH" ;;
*) for last; do file=$row; row=$last; done; echo "[]" >"$file" && echo "row $row" ;;
esac
END
chmod +x "$bare/bin/python3"
mkdir "$kit/python"
stage goals --only 'ncf@256|means'
exits 0
prints '^ok   ncf@256_tf32 +[0-9]+ s  row ncf@256'
prints '^ok   means +[0-9]+ s  judged with [0-9]+ arguments, packages in .*/python$'
check "the packages' libraries are found" grep -q ':/packages/nvidia/cudnn/lib' "$kit/out/library_path"

# NCCL among them: ranks that share the GPU get right sums.
if [ "$nccl" ] && [ "$kit_at" = /kit ]; then
    stage alive --only 'nccl'
    prints '^skip nccl: nccl is not here: libnccl.so.2'
    mkdir -p "$bare/packages/nvidia/nccl/lib"
    cp "$build/tests/nccl_fake/libnccl.so.2" "$bare/packages/nvidia/nccl/lib/"
    stage alive --only 'nccl_two_bf16|nccl_train'
    exits 0
    prints '^ok   nccl_two_bf16 '
    prints '^ok   nccl_train '
fi

mv "$kit/bin/jq" "$kit/bin/no_jq"
stage report
exits 1
complains 'bin/jq does not start'
mv "$kit/bin/no_jq" "$kit/bin/jq"
rm "$kit/build/plugins/cuda.so"
stage alive
exits 5
complains 'no GPU that Ridge could use'
finish
