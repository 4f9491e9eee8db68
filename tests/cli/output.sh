#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writing replaces only regular files, and an old file only by a whole new one.
. tests/lib/tap.sh
db=$tap_dir/r.db
alone() { # the folder holds nothing but these
    check "$1 holds only: $2" test "$(find "$1" -mindepth 1 -printf '%P\n' | sort | tr '\n' ' ')" = "$2"
}
check "a database" env RUNS=2 tests/lib/sample_db.sh "$db"

# A device, a pipe, a folder: refused, and still there. Root could lose a device of the machine to a
# mistake here, so it makes its own, where it may.
device=/dev/full
if [ "$(id -u)" = 0 ]; then
    device=$tap_dir/device
    mknod "$device" c 1 7 2>"$tap_dir/mknod" || device=
fi
pipe=$tap_dir/pipe
mkfifo "$pipe"
for target in $device "$pipe" "$tap_dir"; do
    for command in "export ncf -b 1 -o" "export --format json --db $db -o" "export --format csv --db $db -o" \
        "compare latest~1 latest --db $db --json --output" "run gemm:m=64,n=64,k=64 --no-report --db $db --cache"; do
        refuses 'is a (device|pipe|folder); only a regular file is written or replaced' \
            timeout 60 "$RIDGE" $command "$target"
    done
done
[ "$device" ] && check "the device is one still" test -c "$device"
check "the pipe is one still" test -p "$pipe"

# --cache of endless zeros, by its own name and by a link: refused at once.
run timeout 20 "$RIDGE" run gemm:m=64,n=64,k=64 --db "$db" --cache /dev/zero
exits 2
ln -s /dev/zero "$tap_dir/zeros"
runs timeout 20 env RIDGE_CACHE="$tap_dir/zeros" "$RIDGE" explain gemm:m=64,n=64,k=64
check "the link is one still" test -c "$tap_dir/zeros"

# A limit on the size of files stands for a full disk: the old file stays whole.
mkdir "$tap_dir/full"
old=$tap_dir/full/old
echo "what was there" >"$old"
for command in "export ncf -b 1 -o" "export --format json --db $db -o"; do
    refuses 'old: .*(cannot|could not) be written' sh -c "ulimit -f 2; exec $RIDGE $command $old"
    check "the old file is whole" grep -qx 'what was there' "$old"
    alone "$tap_dir/full" "old "
done
runs ridge export ncf:embedding=gather -b 1 --external -o "$tap_dir/full/m.onnx"
cp "$tap_dir/full/m.onnx" "$tap_dir/m.onnx"
cp "$tap_dir/full/m.onnx.data" "$tap_dir/m.data"
run sh -c "ulimit -f 40; exec $RIDGE export ncf -b 1 --external -o $tap_dir/full/m.onnx"
exits 2
check "the old model is whole" cmp "$tap_dir/full/m.onnx" "$tap_dir/m.onnx"
check "the old model's data are whole" cmp "$tap_dir/full/m.onnx.data" "$tap_dir/m.data"
alone "$tap_dir/full" "m.onnx m.onnx.data old "

# Killed while it writes: the old file stays, and the next one clears away what was left.
for after in 0.02 0.05 0.1 0.2; do
    timeout --foreground -s KILL $after "$RIDGE" export resnet50 -b 1 -o "$tap_dir/full/m.onnx" >"$tap_dir/killed" 2>&1
    check "after a kill at $after s the model is whole" \
        "$RIDGE" graph "$tap_dir/full/m.onnx" --json
done
# Those that were killed while another one wrote have left names behind the first.
touch "$tap_dir/full/.m.onnx.ridge-part1" "$tap_dir/full/.m.onnx.ridge-part3"
runs ridge export ncf -b 1 -o "$tap_dir/full/m.onnx"
alone "$tap_dir/full" "m.onnx m.onnx.data old "

# Links stay, permissions stay; standard output is where it was.
mkdir "$tap_dir/far"
ln -s far/real.json "$tap_dir/link.json"
runs ridge export --format json --db "$db" -o "$tap_dir/link.json"
check "the link is one still" test -L "$tap_dir/link.json"
check "its file was written" jq -e . "$tap_dir/far/real.json"
chmod 604 "$tap_dir/far/real.json"
runs ridge export --format csv --db "$db" -o "$tap_dir/link.json"
check "permissions stay" test "$(stat -c %a "$tap_dir/far/real.json")" = 604
alone "$tap_dir/far" "real.json "
for word in - /dev/stdout; do
    runs ridge export --format json --db "$db" -o "$word"
    holds 'length > 0'
done
mkdir "$tap_dir/closed"
echo old >"$tap_dir/closed/file"
chmod 444 "$tap_dir/closed/file"
if [ "$(id -u)" != 0 ]; then
    refuses 'Permission denied' ridge export --format csv --db "$db" -o "$tap_dir/closed/file"
fi

finish
