#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two runs, one of them with --isa scalar, had one point id: compare saw no difference, history drew
# one series, and BASE counted with the other's runs.
. tests/lib/tap.sh
db=$tap_dir/r.db
fast="--rounds 1 --no-ceilings --no-report --no-verify -n 6 -s 0.01 --seconds-max 0.3 --db $db"
measured() { # OPTIONS
    run ridge run gemm:m=64,n=64,k=64 -b 1 -t 1 $fast "$@"
    [ "$code" = 0 ] || [ "$code" = 4 ] # 4: a busy machine
    tap_result $? "$tap_what: exit code 0 or 4"
}

measured --tag usual
measured --tag none --no-tune --no-fuse
measured --tag again
is "other code is another point" "2 1" "$(sql "SELECT count(DISTINCT point) || ' ' ||
    (SELECT count(*) FROM point WHERE canonical LIKE '% providers= tuning=none fusing=none') FROM result")"
# `ridge plan` takes the same options, and shows the ids that these runs have.
planned() { # TAG OPTIONS
    tag=$1
    shift
    runs ridge plan gemm:m=64,n=64,k=64 -b 1 -t 1 "$@" --json
    is "the id of the run" "$(sql "SELECT DISTINCT p.key FROM result AS r JOIN point AS p ON p.id = r.point
        JOIN run AS u ON u.id = r.run WHERE u.tag = '$tag'")" "$(jq -r '.points[0].id' "$output")"
}
planned usual
planned none --no-tune --no-fuse
run ridge compare usual none --db "$db"
prints '^points differ in +the usual +tuning=none fusing=none'
prints '^missing +gemm:.* threads=1$|^missing +gemm:.* threads=1 '
prints '^new +gemm:.* tuning=none fusing=none'
run ridge compare none usual --db "$db"
prints '^points differ in +tuning=none fusing=none +the usual'
run ridge compare usual again --db "$db"
check "what is the same is not said to differ" sh -c "! grep -q 'points differ in' '$output'"
runs ridge history --db "$db"
prints '2 runs .*gemm:.*threads=1$'
prints '1 runs .*gemm:.*tuning=none fusing=none'

# An instruction set is named where it is not the CPU's best; RIDGE_ISA is a fact of the environment.
measured --tag scalar --isa scalar
best=$("$RIDGE" doctor --json | jq -r '[.. | .isa? // empty][0]')
is "the instruction set that was asked for" "$([ "$best" = scalar ] && echo 0 || echo 1)" \
    "$(sql "SELECT count(*) FROM point WHERE canonical LIKE '% isa=scalar'")"
measured --tag best --isa "$best"
is "the best one is the usual one" 0 "$(sql "SELECT count(*) FROM point WHERE canonical LIKE '% isa=$best' AND '$best' <> 'scalar'")"
RIDGE_ISA=scalar
export RIDGE_ISA
measured --tag variable
unset RIDGE_ISA
run ridge compare usual variable --db "$db"
prints 'RIDGE_ISA +absent +scalar'

# Training on several ranks has the same words, from a suite and from `ridge scale`.
runs ridge scale ncf --tiny --ranks 1 --threads 1 --steps 3 --batch 8 --no-tune --db "$tap_dir/s.db"
is "of ranks, too" 1 "$(sql "SELECT count(*) FROM point WHERE canonical LIKE '% tuning=none'" "$tap_dir/s.db")"
# The command that measures a point again has these options, and its words are quoted for a shell.
again=$(sql "SELECT reproduce FROM result JOIN run ON run.id = run WHERE tag = 'none'")
is "the command has the options" "ridge run gemm:k=64,m=64,n=64 --batch 1 --threads 1 --device cpu \
--scenario single_stream --no-tune --no-fuse" "$(echo "$again" | sed 's/  */ /g')"
runs ridge export ncf --batch 4 --output "$tap_dir/a b's.onnx"
run ridge run "$tap_dir/a b's.onnx" -t 1 $fast --no-tune --tag 'two words'
again=$(sql "SELECT reproduce FROM result JOIN run ON run.id = run WHERE tag = 'two words'")
run sh -c "'$RIDGE' ${again#ridge} $fast"
is "it measures the same point" "2 1" "$(sql "SELECT count(*) || ' ' || count(DISTINCT point)
    FROM result JOIN point ON point.id = point WHERE workload LIKE '%onnx'")"
is "the line that was typed is quoted, too" 1 "$(sql "SELECT count(*) FROM run WHERE command LIKE '%--tag ''two words'''")"
# A file that fixes its batch was stored with batch 0, whose command was refused.
is "the batch of a file" "4 4" "$(sql "SELECT min(batch) || ' ' || max(batch) FROM point WHERE workload LIKE '%onnx'")"
run ridge run "$tap_dir/a b's.onnx" -b 4 -t 1 $fast --no-tune
prints "a b's.onnx +4 "
is "its own batch is no other point" 1 "$(sql "SELECT count(*) FROM point WHERE workload LIKE '%onnx'")"
runs ridge plan "$tap_dir/a b's.onnx" --json
holds '.points[0].batch == 4'
finish
