# SPDX-License-Identifier: Apache-2.0
# title: Distribution of latency
# about: Share of the executions that took at most this long (of a server: of the queries, time in the queue included), with the percentiles that the number of samples allows.
# view: results = report_results(result)
# shape: latency
# size: 860 320
set format '%g'
set ytics 0,25,100
set grid xtics ytics lt 1 lc rgb '#d9d9d9' lw 0.6
plot DATA index 'curve' using (column('time')):(column('share')) with steps lw 2 lc rgb '#0072B2', \
     '' index 'marks' using (column('time')):(column('share')) with points pt 7 ps 1.1 lc rgb '#D55E00'
