# SPDX-License-Identifier: Apache-2.0
# title: How steady the times were
# about: Times of each workload as multiples of its median: thick is the middle half of the executions, thin 98 % of them, the tick or the number at the edge is the slowest one.
# view: results = report_results(run)
# shape: spread
# size: 860 300
set border 1
unset ytics
set format '%g'
set grid xtics lt 1 lc rgb '#d9d9d9' lw 0.6
set arrow from 1, graph 0 to 1, graph 1 nohead dt 3 lc rgb '#808080'
plot DATA index 'rows_of_run' using (column('q01')):(column('row')):(column('q99')-column('q01')):(0) with vectors nohead lw 1.5 lc rgb '#0072B2', \
     '' index 'rows_of_run' using (column('q25')):(column('row')):(column('q75')-column('q25')):(0) with vectors nohead lw 8 lc rgb '#56B4E9', \
     '' index 'rows_of_run' using (column('max')):(column('row')-0.25):(0):(0.5) with vectors nohead lw 2 lc rgb '#D55E00', \
     '' index 'rows_of_run' using (1):(column('row')) with points pt 7 ps 0.7 lc rgb '#000000'
