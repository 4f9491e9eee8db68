# SPDX-License-Identifier: Apache-2.0
# title: Where the time goes
# about: Share of each group of operators in the sum of the times of a workload's steps.
# view: times = report_kinds(run)
# shape: breakdown
# size: 860 300
set border 1
unset ytics
set xtics 0,20,100 format '%g'
set style fill solid 1.0 noborder
plot DATA index 'bars' using ((column('from')+column('to'))/2):(column('bar')):(column('from')):(column('to')):(column('bar')-0.37):(column('bar')+0.37):(column('color')) with boxxyerror lc rgb variable
