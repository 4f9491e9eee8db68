#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 20 trainings, each killed (SIGKILL) at random moments while it saves every few steps, and gone on with until it comes
# to its end: the states are then those of a training that nobody disturbed, bit for bit.
# RIDGE_KILLS (60): how many at most; RIDGE_SEED (1).
# shellcheck disable=SC2086 # words
. tests/lib/tap.sh
kills=${RIDGE_KILLS:-60}
killed=0 equal=0 trainings=0 restarted=0 torn=0

# A number below the first argument, from the seed and how often it was asked.
drawn=0
below() {
    drawn=$((drawn + 1))
    awk -v seed="$((${RIDGE_SEED:-1} * 100000 + drawn))" -v most="$1" 'BEGIN { srand(seed); rand(); printf "%d", rand() * most }'
}

# Optimisers with and without states, ids that meet, batch normalisation, recurrent layers.
words_of() { # number of the training
    case $(($1 % 5)) in
    0) echo ncf --steps 400 ;;
    1) echo wide_deep --steps 300 ;;
    2) echo din --steps 200 ;;
    3) echo resnet50 --steps 40 ;;
    4) echo crnn --steps 40 --optimiser lamb --rate 0.01 ;;
    esac
    echo "--tiny -t 1 --no-tune --seed $1"
}

train() { # number of the training, more words
    words=$(words_of "$1")
    shift
    "$RIDGE" train $words "$@" >"$output" 2>"$errors" </dev/null
}

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# Kills it at a moment of the time that a whole training takes; true: it still ran.
kill_it() { # most ms, words of train
    moment=$(below "$1")
    shift
    words=$(words_of "$1")
    shift
    "$RIDGE" train $words "$@" >"$output" 2>"$errors" </dev/null &
    victim=$!
    sleep "$(awk -v ms="$moment" 'BEGIN { printf "%.3f", ms / 1000 }')"
    kill -9 $victim 2>/dev/null
    wait $victim 2>/dev/null
    [ $? = 137 ]
}

for number in $(seq 1 20); do
    whole=$tap_dir/whole part=$tap_dir/part
    rm -f "$whole" "$part"
    began=$(milliseconds)
    train "$number" --save "$whole"
    took=$(($(milliseconds) - began))
    for kill in 1 2 3; do
        : "$kill"
        [ "$killed" -lt "$kills" ] || break
        set -- "$number" --save "$part" --save-every $((1 + $(below 9)))
        [ -s "$part" ] && set -- "$@" --resume "$part"
        kill_it "$took" "$@" || break # it came to its end first
        killed=$((killed + 1))
        [ ! -s "$part" ] || "$RIDGE" checkpoint show "$part" >"$output" 2>&1 || {
            torn=$((torn + 1))
            echo "# training $number: $(head -1 "$output")"
        }
    done
    trainings=$((trainings + 1))
    if [ -s "$part" ]; then
        restarted=$((restarted + 1))
        # Refused where it had come to its end already.
        train "$number" --save "$part" --resume "$part"
    else
        train "$number" --save "$part"
    fi
    if "$RIDGE" checkpoint diff "$whole" "$part" >"$output" 2>&1; then
        equal=$((equal + 1))
    else
        echo "# training $number differs:"
        head -5 "$output" | sed 's/^/# /'
    fi
done
code=0
[ $equal = $trainings ]
tap_result $? "$equal of $trainings trainings ended with the states of undisturbed ones"
[ $torn = 0 ]
tap_result $? "$torn checkpoints were not whole"
[ $killed -ge 20 ] && [ $restarted -ge 10 ]
tap_result $? "$killed kills hit a running training, $restarted trainings went on from a checkpoint"
finish
