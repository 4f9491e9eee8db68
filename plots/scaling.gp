# SPDX-License-Identifier: Apache-2.0
# title: Scaling
# about: Rate of a training on several ranks, as a multiple of the rate per rank with the fewest ranks, the latest result of each point on this machine. Dashed: ideal; a hollow marker is not valid.
# view: points = report_scaling(run)
# shape: scaling
# size: 860 420
set format '%g'
set grid lt 1 lc rgb '#d9d9d9' lw 0.6
set xtics 1
plot DATA index 'ideal' using (column('ranks')):(column('worth')) with lines dt 2 lw 1 lc rgb '#808080', \
     '' index 'lines' using (column('ranks')):(column('worth')):(column('dx')):(column('dy')):(column('color')) with vectors nohead lw 1.5 lc rgb variable, \
     '' index 'points' using (column('ranks')):(column('worth')):(column('mark')):(column('color')) with points ps 1.2 pt variable lc rgb variable
