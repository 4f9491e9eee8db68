#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is built here must cost what the configuration named for its row of Table I costs.
. tests/lib/tap.sh

runs ridge paper
prints '^ResNet-50 +32 +2\.14e\+11 +2\.4[0-9]+e\+11 '
prints '^NCF +256 '
prints 'Winograd'
runs ridge paper --json
holds 'length == 17 and ([.[] | select(.built)] | length) >= 4'
holds 'all(.[]; .paper.intensity > 0 and (.explanation | length) > 10)'
holds 'all(.[] | select(.built); (.ours.flops / .analytic_flops - 1 | fabs) < 0.02)'
holds 'all(.[] | select(.built | not); .ours.flops == null and .flops_ratio == null)'
holds '.[] | select(.title == "BERT") | (.paper.fraction_of_peak - 0.6875 | fabs) < 0.001'
holds '.[] | select(.title == "GCN") | .paper.time_s == null'
holds '.[] | select(.workload == "resnet50") | .ours.params == 25557032'
run ridge paper extra
exits 2
finish
