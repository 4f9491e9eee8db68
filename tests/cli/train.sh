#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# parts: detectors others command
# Every workload that can be trained learns in its tiny form; the same seed gives the same losses; what the command says
# and refuses.
. tests/lib/tap.sh
part=${1:-all}
tab=$(printf '\t')

# What other tests tuned at the same time would be read without tuning, too.
export RIDGE_CACHE="$tap_dir/cache.txt"

of_part() { [ "$part" = all ] || [ "$part" = "$1" ]; }

# Without tuning, so that every run of this program has the same kernels, and with them the same
# losses. Some halve their loss long before their tiny form ends. The mean of the last five losses is
# judged, as many of every workload: one batch, or the two that are a tenth of a short training, may
# be easy or hard by luck.
learns() {
    case $1 in
    ssd*_vgg16) steps=12 ;;
    ssd300_resnet50) steps=30 ;;
    ssd321_*) steps=22 ;;
    faster_rcnn) steps=25 ;;
    mask_rcnn) steps=45 ;;
    densenet121*) steps=20 ;;
    seglink) steps=25 ;;
    vgg16) steps=130 ;;
    *) steps= ;;
    esac
    runs ridge train "$1" --tiny --no-tune -t 1 --json ${steps:+--steps "$steps"}
    holds '(.losses[-5:] | add / length) <= .loss_first / 2'
    holds '.steps == .steps_wanted and (.losses | length) == .steps'
    holds '.held_out | length == 1 and (.[0].loss | type) == "number"'
}

jq_list='.[] | select(.modes | index("training")) | [.name, .task] | @tsv'
"$RIDGE" list --json | jq -r "$jq_list" >"$tap_dir/trained"
if of_part detectors; then
    grep 'object detection' "$tap_dir/trained" | cut -f 1 >"$tap_dir/names"
    while read -r name; do
        learns "$name"
    done <"$tap_dir/names"
fi
if of_part others; then
    grep -v 'object detection' "$tap_dir/trained" >"$tap_dir/names"
    while IFS="$tab" read -r name task; do
        learns "$name"
        case $task in # reading and writing take longer to learn
        'image classification' | 'click-through prediction' | 'implicit-feedback ranking' | 'classification of'*)
            holds '.held_out[0].loss <= .loss_first / 2'
            ;;
        esac
    done <"$tap_dir/names"
fi
of_part command || finish

runs ridge train ncf --tiny --steps 40 --eval-every 20 -t 1 --no-tune --json
holds '.held_out | map(.step) == [20, 40]'
holds '.quality == "AUC" and .held_out[1].quality > 0.4 and .held_out[1].quality <= 1'
holds '.held_out[1].quality_bayes > 0.99 and .held_out[0].quality_bayes == .held_out[1].quality_bayes'
jq .losses "$output" >"$tap_dir/losses"
run ridge train ncf --tiny --steps 40 -t 2 --no-tune --json
jq .losses "$output" >"$tap_dir/again"
check "the same seed, the same losses, on one thread and on two" \
    cmp "$tap_dir/losses" "$tap_dir/again"
run ridge train ncf --tiny --steps 40 --seed 1 -t 1 --quick-tune --json
jq .losses "$output" >"$tap_dir/other"
check "another seed, other losses" sh -c "! cmp -s '$tap_dir/losses' '$tap_dir/other'"

runs ridge train ncf --tiny --steps 20 -t 1 --quick-tune --optimiser sgd --rate 0.5
prints 'sgd, rate 0\.5'
prints 'waiting for input'
complains 'step 20 of 20: loss'

# Activations that are computed again are the same, bit for bit, dropout included, in less memory.
thin="bert_base:depth=6,tokens=64,width=96,heads=3,vocabulary=512 --batch 16 --steps 3 -t 1 --no-tune --json"
runs ridge train $thin
jq .losses "$output" >"$tap_dir/kept_losses"
kept=$(jq .arena_bytes "$output")
runs ridge train $thin --recompute
jq .losses "$output" >"$tap_dir/recomputed_losses"
check "recomputed, the same losses" cmp "$tap_dir/kept_losses" "$tap_dir/recomputed_losses"
holds ".recompute and .arena_bytes * 2 < $kept"

# A batch norm of which only the statistics are computed again: its cost was looked for in a result that was cut.
runs ridge train resnet50 --tiny --batch 4 --steps 2 -t 1 --no-tune --json
jq .losses "$output" >"$tap_dir/kept_losses_of_resnet"
runs ridge train resnet50 --tiny --batch 4 --steps 2 -t 1 --no-tune --json --recompute
check "a network with batch norms recomputed" [ "$(jq -c .losses "$output")" = "$(jq -c . "$tap_dir/kept_losses_of_resnet")" ]

run ridge train $thin --recompute --segments 3
exits 0
jq .losses "$output" >"$tap_dir/segments_losses"
check "in three segments, the same losses" cmp "$tap_dir/kept_losses" "$tap_dir/segments_losses"
holds ".arena_bytes < $kept"
run ridge train $thin --recompute --segments 100000
exits 2
complains 'in 100000 segments: the forward pass of bert_base has [0-9]+ nodes'
run ridge train ncf --tiny --segments 3
exits 2
complains '\-\-segments belongs to --recompute'

# A batch taken in parts: the losses of the whole but for roundings, in less memory.
for spec in ncf ncf:embedding=gather wide_deep; do
    run ridge train $spec --tiny --batch 64 --steps 12 -t 1 --no-tune --json
    exits 0
    jq .losses "$output" >"$tap_dir/whole_losses"
    kept=$(jq .arena_bytes "$output")
    run ridge train $spec --tiny --batch 64 --micro-batches 4 --steps 12 -t 1 --no-tune --json --save "$tap_dir/parts"
    exits 0
    holds '.batch == 64 and .micro_batches == 4 and .steps == 12'
    holds ".arena_bytes < $kept"
    holds ".losses as \$parts | $(cat "$tap_dir/whole_losses") as \$whole |
        all(range(12); (\$parts[.] / \$whole[.] - 1 | fabs) < 1e-4)"
done
run ridge train wide_deep --tiny --batch 64 --steps 14 -t 1 --no-tune --resume "$tap_dir/parts"
exits 2
complains 'was trained with --micro-batches 4: go on with as many'
run ridge train wide_deep --tiny --batch 64 --micro-batches 4 --steps 14 -t 1 --no-tune --resume "$tap_dir/parts"
exits 0
prints '13 to 14, of batch 64 in 4 parts'
run ridge train ncf --tiny --batch 64 --micro-batches 3
exits 2
complains 'a batch of 64 is not so many equal parts'

# A training that stopped goes on as if it had not: the same losses and the same states, bit for bit.
runs ridge train ncf --tiny --steps 40 -t 1 --no-tune --save "$tap_dir/whole"
# Constant rates do not depend on how many steps there will be.
runs ridge train ncf --tiny --steps 15 -t 1 --no-tune --save "$tap_dir/part" --save-every 5
runs ridge train ncf --tiny --steps 40 -t 1 --no-tune --resume "$tap_dir/part" --save "$tap_dir/rest" --json
holds '.first_step == 15 and .steps == 40 and (.losses | length) == 25'
jq '.losses' "$output" >"$tap_dir/rest_losses"
jq '.[15:]' "$tap_dir/losses" >"$tap_dir/whole_losses"
check "the same losses" cmp "$tap_dir/rest_losses" "$tap_dir/whole_losses"
runs ridge checkpoint diff "$tap_dir/whole" "$tap_dir/rest"
run ridge checkpoint diff "$tap_dir/whole" "$tap_dir/part"
exits 1
refuses 'is of ncf' ridge train wide_deep --tiny --resume "$tap_dir/part"
refuses 'batches of another size' ridge train ncf --tiny --batch 8 --resume "$tap_dir/part"
refuses 'has made 15 steps' ridge train ncf --tiny --steps 15 --resume "$tap_dir/part"
run ridge train ncf --tiny --save-every 5
exits 2

# Seed and rate are the checkpoint's, to the last bit of the rate, where none is given.
runs ridge train ncf --tiny --seed 7 --rate 0.0512345678 -n 6 -t 1 --no-tune --json
jq '.losses[3:]' "$output" >"$tap_dir/whole_losses"
runs ridge train ncf --tiny --seed 7 --rate 0.0512345678 -n 3 -t 1 --no-tune --save "$tap_dir/s3"
runs ridge train ncf --tiny -n 6 -t 1 --no-tune --resume "$tap_dir/s3" --json
complains 's3: goes on after step 3, with seed 7 of the checkpoint and rate 0\.0512346 of the checkpoint$'
holds '.seed == 7 and .rate == 0.0512345678'
jq '.losses' "$output" >"$tap_dir/rest_losses"
check "the losses of a training of 6 steps" cmp "$tap_dir/rest_losses" "$tap_dir/whole_losses"
runs ridge train ncf --tiny -n 6 -t 1 --no-tune --resume "$tap_dir/s3" --seed 7 --rate 0.1 --json
complains 'with seed 7 and rate 0\.1, not 0\.0512346 as before$'
holds '.seed == 7 and .rate == 0.1'
for seed in 0 8; do
    refuses 's3 was trained with --seed 7: go on with the same' \
        ridge train ncf --tiny -n 6 -t 1 --no-tune --resume "$tap_dir/s3" --seed $seed
done
# So are the steps over which a rate falls: with the published 500 the rest would be another training.
# Parameters may be typed in another order.
falling="--batch 4 -t 1 --no-tune"
runs ridge train resnet50:image=32,classes=4,thin=8 $falling -n 6 --json
jq '.losses[3:]' "$output" >"$tap_dir/whole_losses"
runs ridge train resnet50:image=32,classes=4,thin=8 $falling -n 6 --until 0.001 --eval-every 3 --save "$tap_dir/falling"
runs ridge train resnet50:thin=8,classes=4,image=32 $falling --resume "$tap_dir/falling" --save "$tap_dir/ended" --json
complains 'falling: goes on after step 3 to step 6 of the checkpoint, with seed'
jq '.losses' "$output" >"$tap_dir/rest_losses"
check "the losses of a training of 6 steps" cmp "$tap_dir/rest_losses" "$tap_dir/whole_losses"
runs ridge train resnet50:image=32,classes=4,thin=8 $falling -n 8 --resume "$tap_dir/falling"
complains 'after step 3 to step 8, not 6 as before, so with other rates, with seed'
refuses 'has made 6 steps: --steps must be more' \
    ridge train resnet50:image=32,classes=4,thin=8 $falling --resume "$tap_dir/ended"
refuses 'falling is of resnet50:image=32,classes=4,thin=8, not of resnet50:image=32,classes=4' \
    ridge train resnet50:image=32,classes=4 $falling --resume "$tap_dir/falling"

# Killed (SIGKILL) while it saves after every step, and gone on with: the same states, bit for bit.
runs ridge train wide_deep --tiny --steps 400 -t 1 --no-tune --save "$tap_dir/whole"
killed=0
for pause in 0.05 0.1 0 0.02 0; do
    [ $killed -lt 2 ] || break
    rm -f "$tap_dir/part"
    "$RIDGE" train wide_deep --tiny --steps 400 -t 1 --no-tune --save "$tap_dir/part" --save-every 1 >/dev/null 2>&1 &
    victim=$!
    until [ -s "$tap_dir/part" ] || ! kill -0 $victim 2>/dev/null; do
        sleep 0.01
    done
    sleep "$pause"
    kill -9 $victim 2>/dev/null
    wait $victim 2>/dev/null
    died=$?
    if [ $died != 137 ] || [ ! -s "$tap_dir/part" ]; then
        continue
    fi
    killed=$((killed + 1))
    runs ridge train wide_deep --tiny --steps 400 -t 1 --no-tune --resume "$tap_dir/part" --save "$tap_dir/rest" --json
    holds '.first_step >= 1 and .first_step < 400'
    runs ridge checkpoint diff "$tap_dir/whole" "$tap_dir/rest"
done
[ $killed = 2 ]
tap_result $? "$killed trainings were killed after their first checkpoint"

# Said before the first step, not after the last one.
for option in save tsv; do
    refuses 'nonexist/x: cannot be written: folder .*nonexist/: No such file' \
        timeout 60 "$RIDGE" train ncf --tiny -n 1000000000 -t 1 --no-tune --$option "$tap_dir/nonexist/x"
done
refuses 'nonexist/x: cannot be written' \
    timeout 60 "$RIDGE" scale ncf --tiny --ranks 1 -s 1000000 -t 1 --no-tune --save "$tap_dir/nonexist/x"

# A batch that no memory holds is refused before samples are made, and its graph needs none.
run timeout 20 "$RIDGE" train ncf --tiny -n 2 -b 1000000000 -t 1 --no-tune
exits 5
complains 'memory|GB'
run timeout 20 "$RIDGE" graph ncf --mode training -b 100000000 --json
exits 0

# What cannot be. 0 was taken for what had not been given.
for option in rate until price read-limit; do
    refuses "\-\-$option needs a number above 0, got \"0\"" ridge train ncf --tiny --$option 0
done
run ridge train gemm
exits 5
complains 'gemm is not trained'
refuses 'not known' ridge train nfc
refuses 'did you mean "adam"' ridge train ncf --optimiser adm
run ridge train ncf --tiny --rate 1e30 --steps 50 --optimiser sgd -t 1 --no-tune
exits 3
complains 'the loss of step [0-9]+ is .*smaller --rate'

# Typed in another order, or with a default, it is the same training; it had three ids.
db=$tap_dir/typed.db
for spec in ncf:items=30,users=40 ncf:users=40,items=30 ncf:users=40,embedding=onehot,items=30; do
    runs ridge train $spec -b 16 -n 1 -t 1 --no-tune --db "$db"
done
is "one point of three results" "3 1" "$(sql 'SELECT count(*) || " " || count(DISTINCT point) FROM result')"

# Another optimiser, or images that grow, are another training; both had the id of the published one.
db=$tap_dir/recipes.db
for how in "" "--optimiser sgd" "--providers onednn,native" "--providers native,onednn"; do
    runs ridge train ncf --tiny -b 16 -n 1 -t 1 --no-tune $how --db "$db"
done
runs ridge train googlenet --tiny -b 2 -n 2 -t 1 --no-tune --db "$db"
runs ridge train googlenet --tiny -b 2 --sizes 32:1,48:1 -t 1 --no-tune --db "$db"
is "points" "3 2" "$(sql "SELECT count(*) FILTER (WHERE workload = 'ncf') || ' ' || count(*) FILTER (WHERE workload <> 'ncf') FROM point")"

# Too small to hold anything that is asked for, they would have a loss of nothing, which is no number.
for small in tokens=4,depth=1,width=8,heads=2,vocabulary=8 tokens=1,depth=1,width=8,heads=2,vocabulary=8; do
    refuses 'tokens is [14]; it must be at least 5' ridge train "bert_base:$small" -b 1 -n 1
done
runs ridge train bert_base:tokens=5,depth=1,width=8,heads=2,vocabulary=8 -b 1 -n 8 -t 1 --no-tune
refuses 'target is 1; it must be at least 2' ridge train nmt:source=3,target=1,vocabulary=5,width=4 -b 2 -n 1

# A training that diverges is kept as failed, with the reason and without times: nothing to be ranked.
db=$tap_dir/diverged.db
run ridge train ncf --tiny --rate 1e30 -n 5 -t 1 --no-tune --db "$db"
exits 3
complains 'the loss of step 2 is not a number: a smaller --rate'
prints 'last loss +not a number$'
is "kept as" "failed|invalid|the loss of step 2 is not a number: a smaller --rate than 1e+30 may help|" \
    "$(sql 'SELECT status, verdict, reason, stop_reason FROM result')"
is "numbers of a training that diverged" 0 "$(sql 'SELECT count(*) FROM metric')"
# Its last step breaks the weights: the loss of held-out samples tells, and their AUC is not known.
db=$tap_dir/judged.db
run timeout 60 "$RIDGE" train ncf --tiny --rate 1e30 -n 1 -t 1 --no-tune --db "$db"
exits 3
complains 'after step 1 the loss of held-out samples is not a number'
is "kept as" failed "$(sql 'SELECT status FROM result')"
# Nor does a smaller rate help weights that are broken already, as those are that this one saved.
# It saves them no longer: here somebody else wrote a weight that is not a number.
runs ridge train ncf --tiny --optimiser sgd -n 1 -t 1 --no-tune --save "$tap_dir/broken"
printf '\377\377\377\177' | dd of="$tap_dir/broken" bs=1 conv=notrunc \
    seek="$(($(wc -c <"$tap_dir/broken") - 4))" 2>/dev/null
run ridge train ncf --tiny --optimiser sgd -n 5 -t 1 --no-tune --resume "$tap_dir/broken"
LC_ALL=C sed -i "$(sed -n 's|.*checksum is \([0-9a-f]*\), that of its contents \([0-9a-f]*\);.*|s/\1/\2/|p' "$errors")" \
    "$tap_dir/broken"
run ridge train ncf --tiny --optimiser sgd --rate 0.001 -n 5 -t 1 --no-tune --resume "$tap_dir/broken"
exits 3
complains 'the loss of step 2 is not a number: so it is with the weights of .*broken: go on from an earlier'

# Broken weights do not replace the last good file: whether samples are held out that tell, or not.
good=$tap_dir/good
runs ridge train ncf --tiny -n 1 -t 1 --no-tune --save "$good"
before=$(cksum <"$good")
run ridge train ncf --tiny --rate 1e30 -n 1 -t 1 --no-tune --save "$good"
exits 3
complains 'is not a number.*nothing was saved of this step in .*good'
is "the file after a broken step" "$before" "$(cksum <"$good")"
run ridge train ncf --tiny --rate 1e39 -n 2 --save-every 1 -t 1 --no-tune --save "$good"
exits 3
complains 'after step 1 "[^"]*" is not finite.*nothing was saved of this step in .*good'
is "the file after a broken step in between" "$before" "$(cksum <"$good")"

# One that Ctrl-C ends is kept as interrupted, and never ranked; it was kept as if all steps were made.
db=$tap_dir/cut.db
env --default-signal=INT "$RIDGE" train ncf --tiny -n 10000000 --eval-every 1 -t 1 --no-tune --db "$db" \
    >"$output" 2>"$errors" </dev/null &
pid=$!
tries=0
until grep -q '^step 2, held out' "$errors" || [ $tries = 600 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -INT $pid
wait $pid
code=$?
tap_what="Ctrl-C"
exits 4
complains 'interrupted before the last step'
is "kept as" "interrupted|ok|invalid|interrupted|1" "$(sql "SELECT state, status, r.verdict, stop_reason,
    r.reason LIKE 'interrupted after step % of 10000000' FROM result AS r JOIN run AS u ON u.id = r.run")"

# A step in parts is kept with the work of all of them.
db=$tap_dir/steps.db
for more in "" "--micro-batches 4"; do
    runs ridge train ncf --tiny -n 2 -t 1 --no-tune $more --db "$db"
done
is "FLOPs of a step are alike" 1 "$(sql "SELECT max(value) < 1.1 * min(value) FROM metric WHERE name = 'flops'")"
finish
