#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A step of training in the commands that plan, show, verify, measure and export a model.
. tests/lib/tap.sh
small="ncf:users=32,items=24"
db=$tap_dir/results.db

runs ridge plan ncf --mode inference,training --json
holds '.points | map(.mode) == ["inference", "training"]'
holds '.points | map(.id) | length == (unique | length)'
run ridge plan ncf --json
holds '.points[0].canonical | contains("mode=inference")'
run ridge plan gemm --mode training
prints 'skipped: mode "training": gemm has no loss'
run ridge plan ncf --mode training --scenario server --latency-bound 1
prints 'skipped: scenario "server": nobody waits'
run ridge plan ncf --mode learning
exits 2

# A row says which mode it is of.
run ridge run ncf -b 1 --mode inference,training --device null --rounds 1 --no-verify --no-report --no-ceilings --db "$db"
prints '^ncf +1 +[0-9]+ '
prints '^ncf training +1 +[0-9]+ '
runs ridge export --format markdown --db "$db"
prints '^\| ncf \| 1 \|'
prints '^\| ncf training \| 1 \| .* \| single\\_stream \|'
rm -f "$db"

runs ridge plan ncf --mode inference,training --recompute --json
holds '.points[0].skip | startswith("recompute: only a step of training")'
holds '.points[1] | .skip == null and (.canonical | endswith(" recompute=auto"))'
run ridge plan ncf --mode training --recompute --segments 2,4 --json
holds '.points | map(.canonical | split(" ") | last) == ["recompute=2", "recompute=4"]'
refuses 'of a single segment nothing is computed again' ridge plan ncf --mode training --recompute --segments 1
refuses '\-\-recompute needs --mode training' ridge graph ncf --recompute

runs ridge graph "$small" --mode training --json
holds '[.nodes[].phase] | unique == ["backward", "forward", "update"]'
holds '[.nodes[] | select(.phase == "update").op] | contains(["Adam"])'
backward=$(jq '[.nodes[] | select(.phase == "backward")] | length' "$output")
runs ridge graph "$small" --mode training --recompute --segments 2 --json
holds "[.nodes[] | select(.phase == \"backward\")] | length > $backward"
run ridge graph "$small" --json
holds 'all(.nodes[]; .phase == "forward")'

runs ridge verify "$small" "$small,embedding=gather" wide_deep --batch 16 --mode training --quick-tune --json
holds 'length == 3 and all(.[]; .status == "ok" and .max_rel_error > 0 and .max_rel_error <= 1e-4)'
runs ridge verify "$small" --batch 16 --mode training --recompute --segments 2 --quick-tune --json
holds '.[0].status == "ok"'
case $RIDGE in
*asan* | *tsan*) ;; # they reserve address space of their own
*)
    runs sh -c 'ulimit -v 350000; exec "$@"' sh "$RIDGE" verify "$small" --batch 262144 --mode training --no-tune \
        --providers native --threads 1
    prints 'batch [0-9]+, because the reference of batch 262144 needs more memory than is free'
    ;;
esac
refuses 'no workload that is trained is of the domain "micro"' ridge verify --all --domain micro --mode training
run ridge verify gemm --mode training
exits 5
complains 'gemm is not trained'

runs ridge explain "$small" --batch 16 --mode training --quick-tune
prints '^backward +[0-9]+ steps, '
prints '^update +[0-9]+ steps, '

run ridge run "$small" --batch 16 --mode inference,training --seconds 0.05 --samples 5 --interval 0 --quick-tune \
    --rounds 1 --no-ceilings --db "$db" --report "$tap_dir/report" --json
[ "$code" = 0 ] || [ "$code" = 4 ]
tap_result $? "a run of both modes: exit code 0 or 4"
holds 'length == 2 and all(.[]; .status == "ok" or .status == "invalid")'
runs ridge export --format json --db "$db"
for phase in forward backward update; do
    prints "${phase}_time_s"
    prints "${phase}_flops"
    prints "${phase}_bytes"
done
for memory in state gradient activation; do
    prints "${memory}_bytes"
done
prints '"mode": "training"'
runs ridge history ncf --db "$db"
prints 'training'
check "the page shows the phases" grep -q "Phases of a step" "$tap_dir/report/index.html"
check "and what they leave in memory" grep -q ">Leaves<" "$tap_dir/report/index.html"

# A step needs operators that ONNX does not have.
run ridge export "$small" --mode training --output "$tap_dir/step.onnx"
exits 5
complains 'has no form in ONNX'
finish
