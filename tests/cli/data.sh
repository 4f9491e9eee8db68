#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training on files: formats, epochs, sizes that grow, resuming, a slow source, time to accuracy.
. tests/lib/tap.sh
data=$tap_dir/data
mkdir -p "$data/mnist/MNIST/raw" "$data/ml" "$data/cora" "$data/census" "$data/text"

# Digits of two kinds, dark above or dark below, 8 x 8 pixels: count, name.
make_idx() {
    awk -v count="$1" 'BEGIN {
        printf "\\000\\000\\010\\003\\000\\000\\000\\%03o\\000\\000\\000\\010\\000\\000\\000\\010", count
        for (k = 0; k < count; k++)
            for (y = 0; y < 8; y++)
                for (x = 0; x < 8; x++)
                    printf "\\%03o", (y < 4) == k % 2 ? 200 + (5 * x + k) % 50 : (3 * x + k) % 40
    }' >"$tap_dir/escaped"
    # shellcheck disable=SC2059
    printf "$(cat "$tap_dir/escaped")" >"$data/mnist/MNIST/raw/$2-images-idx3-ubyte"
    awk -v count="$1" 'BEGIN {
        printf "\\000\\000\\010\\001\\000\\000\\000\\%03o", count
        for (k = 0; k < count; k++)
            printf "\\%03o", k % 2
    }' >"$tap_dir/escaped"
    # shellcheck disable=SC2059
    printf "$(cat "$tap_dir/escaped")" >"$data/mnist/MNIST/raw/$2-labels-idx1-ubyte"
}
make_idx 100 train
make_idx 30 t10k
awk 'BEGIN { for (u = 1; u <= 20; u++) for (i = u % 2; i < 24; i += 2) if ((u * i) % 3)
    printf "%d\t%d\t5\t%d\n", u, i, (u * 7 + i * 13) % 101 }' >"$data/ml/u.data"
awk 'BEGIN { for (k = 0; k < 40; k++) { age = 20 + 7 * k % 50
    printf "%d, Private, 1, Masters, 14, Divorced, Sales, Wife, White, Female, 0, 0, %d, Peru, %s\n",
           age, 30 + k, (age > 40 ? ">50K" : "<=50K") } }' >"$data/census/adult.data"
awk 'BEGIN { for (p = 0; p < 30; p++) { printf "p%d", p
    for (w = 0; w < 12; w++) printf "\t%d", w % 3 == p % 3
    printf "\tsubject%d\n", p % 3 } }' >"$data/cora/cora.content"
awk 'BEGIN { for (p = 3; p < 30; p++) printf "p%d\tp%d\n", p, p - 3 }' >"$data/cora/cora.cites"

# A tiny form has a constant rate, so that 13 steps are the beginning of 30.
small="resnet50:image=16,classes=2 --tiny"
one="-t 1 --quick-tune --batch 10"
# States are compared bit by bit, so a kernel that was chosen must stay chosen: other tests, which run at the
# same time, replace the file of winners that all share.
export RIDGE_CACHE="$tap_dir/cache.txt"

{
runs ridge train $small --data "$data/mnist" --epochs 3 $one --json --save "$tap_dir/whole" --tsv "$tap_dir/tsv"
holds '.data == "mnist" and .epoch_samples == 100 and .steps == 30 and .lesson == null'
holds '.held_out | map(.epoch) == [1, 2, 3]'
holds '.quality == "accuracy" and .quality_also == "top-5" and .held_out[2].quality_also == 1'
holds '.read_bytes >= 30 * 10 * 65 and .cost_dollars == null'
check "a line of DAWNBench's TSV for each epoch" sh -c "cut -f 1,4 '$tap_dir/tsv' | tr '\t\n' ', ' |
    grep -qx 'epoch,top5Accuracy 1,100 2,100 3,100 '"
check "hours grow" awk 'NR > 2 && $2 <= last { exit 1 } { last = $2 }' "$tap_dir/tsv"
jq .losses "$output" >"$tap_dir/losses"

# The same samples on three threads, and after a stop.
run ridge train $small --data mnist:"$data/mnist" --steps 30 --reader-threads 3 $one --json
jq .losses "$output" >"$tap_dir/again"
check "as many readers as you like, the same losses" cmp "$tap_dir/losses" "$tap_dir/again"
runs ridge train $small --data "$data/mnist" --steps 13 $one --save "$tap_dir/part"
runs ridge train $small --data "$data/mnist" --steps 30 $one --resume "$tap_dir/part" --save "$tap_dir/rest" --reader-threads 2
runs ridge checkpoint diff "$tap_dir/whole" "$tap_dir/rest"
refuses 'samples that are mnist of 100, and these are made up' \
    ridge train $small --steps 30 $one --resume "$tap_dir/part"

# Images that grow: two epochs of ten steps, then one. Stopped after the first, and gone on with.
runs ridge train $small --data "$data/mnist" --sizes 8:2,16:1 $one --save "$tap_dir/grown" --json
holds '.steps == 30 and (.held_out | length) == 1'
runs ridge train $small --data "$data/mnist" --sizes 8:2,16:1 $one --until 0.01 --save "$tap_dir/begun" --json
holds '.steps == 10 and .reached'
runs ridge train $small --data "$data/mnist" --sizes 8:2,16:1 $one --resume "$tap_dir/begun" --save "$tap_dir/ended"
runs ridge checkpoint diff "$tap_dir/grown" "$tap_dir/ended"
refuses 'images of sizes "8:2,16:1", not "8:3"' \
    ridge train $small --data "$data/mnist" --sizes 8:3 $one --resume "$tap_dir/begun"
refuses 'training of densenet121' ridge train densenet121 --tiny --sizes 32:1,1:1 --batch 1 -t 1 --no-tune
refuses 'a size and for how long' ridge train $small --sizes 8:2,x $one
refuses 'has no parameter "image"' ridge train ncf --tiny --sizes 8:2
}

# Whoever reads slowly waits: a batch of 3 kB in 30 ms.
runs ridge train ncf --tiny --steps 30 -t 1 --quick-tune --read-limit 0.1 --json
holds '.input_wait_share > 0.1 and .input_wait_share <= 1 and .bound == "input"'
run ridge train ncf --tiny --steps 30 -t 1 --quick-tune --read-limit 0.1 --price 7200 --db "$tap_dir/db"
prints 'input is what limits this training'
prints 'cost +\$[0-9.]+ at \$7200 per hour'

run ridge train ncf --tiny --steps 30 -t 1 --quick-tune --db "$tap_dir/db"
run ridge export --format json --db "$tap_dir/db"
prints 'input_wait_share'
prints 'held_out_loss'
run sqlite3 "$tap_dir/db" "SELECT value FROM metric WHERE name = 'cost_dollars' AND value > 0"
prints '^[0-9]'
run sqlite3 "$tap_dir/db" "SELECT value FROM metric WHERE name = 'arena_bytes' AND value > 0"
prints '^[0-9]'
for limit in 100000 0; do # bytes per second
    key=$(sqlite3 "$tap_dir/db" "SELECT key FROM point WHERE canonical LIKE '%limit=$limit %'")
    run ridge history "$key" --db "$tap_dir/db" --json
    holds ".point == \"$key\" and (.runs | length) == 1"
    share=$(sqlite3 "$tap_dir/db" "SELECT value FROM metric WHERE name = 'input_wait_share' AND
        result = (SELECT r.id FROM result AS r JOIN point AS p ON p.id = r.point WHERE p.key = '$key')")
    holds "(.runs[0].bound == \"input\") == ($share > 0.1)" # a busy machine reads slowly, too
done

runs ridge train ncf:users=20,items=24 --data "$data/ml" --epochs 2 -t 1 --quick-tune --batch 32 --json
holds '.quality == "HR@10" and .quality_also == "NDCG@10" and .data == "movielens"'
runs ridge train ncf --data "$data/ml" --until 0.0001 --epochs 40 -t 1 --quick-tune --batch 32 --rate 0.01 --json
holds '.reached == (.held_out[-1].quality >= 0.0001)'
runs ridge train wide_deep --data "$data/census/adult.data" --epochs 30 -t 1 --quick-tune --batch 8 --json
holds '.quality == "AUC" and .loss_last < .loss_first'
awk 'BEGIN { for (k = 0; k < 120; k++) print "word" k % 7 " word" (k + 1) % 7 " and word" (k + 2) % 7 "."
    }' >"$data/text/train.txt"
runs ridge train bert_base --tiny --data "$data/text" --steps 60 -t 1 --quick-tune --json
holds '.data == "text" and .quality == "accuracy" and .loss_last < .loss_first'
# Word pieces: capitals do not count, for the vocabulary has none.
mkdir -p "$data/pieces"
sed 's/^w/W/' "$data/text/train.txt" >"$data/pieces/train.txt"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' word '##0' '##1' '##2' '##3' '##4' '##5' and . >"$data/pieces/vocab.txt"
pieces="bert_base --tiny --data $data/pieces -t 1 --quick-tune --json"
{
runs ridge train $pieces --steps 60 --save "$tap_dir/pieces"
holds '.loss_last < .loss_first and .unknown_words_share > 0.04 and .unknown_words_share < 0.09' # word6
runs ridge train $pieces --steps 70 --resume "$tap_dir/pieces"
refuses 'by vocabulary [0-9a-f]{16}, and these are .* by vocabulary' \
    ridge train $pieces --steps 70 --resume "$tap_dir/pieces" --letter-case keep
runs ridge train $pieces --steps 5 --letter-case keep
holds '.unknown_words_share > 0.1'
}
refuses '\-\-letter-case is about the text of --data' ridge train bert_base --tiny --letter-case keep

# A language of eight words, each with its translation, and the other way round: a file, and two files.
awk 'BEGIN { for (k = 0; k < 900; k++) { s = t = ""; n = 2 + k % 4
    for (w = 0; w < n; w++) { x = (k * (w + 3) + int(k / 7) * w) % 8; s = s " Wort" x; t = " word" x t }
    print substr(s, 2) "\t" substr(t, 2) } print "eins zwei drei vier acht neun zehn\tmuch" }' >"$data/all.tsv"
mkdir -p "$data/pairs"
cut -f 1 "$data/all.tsv" >"$data/pairs/corpus.de"
cut -f 2 "$data/all.tsv" >"$data/pairs/corpus.en"
nmt="nmt --tiny --optimiser adam --rate 0.003 --steps 60 -t 1 --quick-tune --json"
{
runs ridge train $nmt --data "$data/all.tsv"
holds '.data == "pairs" and .left_out == 1 and .unknown_words_share == 0 and .loss_last < .loss_first * 0.8'
holds '.padding_share > 0.35 and .padding_share < 0.42' # 3.5 words and 4.5 with the end, of 6 and 7
jq .losses "$output" >"$tap_dir/one_file"
runs ridge train $nmt --data "$data/pairs/corpus.de,corpus.en" --reader-threads 2
jq .losses "$output" >"$tap_dir/two_files"
check "one file of pairs or two, the same losses" cmp "$tap_dir/one_file" "$tap_dir/two_files"
runs ridge train nmt --tiny --data "$data/all.tsv" --steps 2 -t 1 --no-tune
prints 'pairs: [0-9]+ samples, [0-9]+ held out, 1 left out, 0 % of [0-9]+ words unknown, samples [0-9]+ % padding'
sed '$d' "$data/pairs/corpus.en" >"$data/pairs/short.en"
refuses 'short.en: ends after line 900, and .*corpus.de goes on' \
    ridge train $nmt --data "$data/pairs/corpus.de,short.en"
}

runs ridge train gcn --data "$data/cora" --steps 60 -t 1 --quick-tune --json
holds '.data == "cora" and .loss_last < .loss_first / 2'

# What cannot be.
run ridge train ncf --data "$data/mnist"
exits 5
complains 'ncf is not trained on data of format mnist: it has no input "image"'
refuses 'train-labels-idx1-ubyte, offset 9: label 1, but the network tells 1 classes apart' \
    ridge train resnet50:classes=1 --data "$data/mnist"
refuses 'no such file' ridge train ncf --data "$data/nothing"
refuses '\-\-epochs needs --data' ridge train ncf --tiny --epochs 3
head -c 90 "$data/ml/u.data" >"$tap_dir/cut" && mv "$tap_dir/cut" "$data/ml/u.data"
refuses 'u\.data:[0-9]+: .*cut off' ridge train ncf --data "$data/ml"

run ridge list data --json
holds 'map(.name) | contains(["mnist", "cifar10", "census", "movielens", "cora", "jpeg", "text", "pairs"])'
finish
