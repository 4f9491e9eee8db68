# SPDX-License-Identifier: Apache-2.0
# title: History of the share of the roof
# about: How near the point came in each run to the least time that the ceilings of the same run allow; above 100 % something is counted or measured wrong.
# view: shares = report_history(result)
# shape: history
# size: 860 190
set format '%g'
unset xtics
set grid ytics lt 1 lc rgb '#d9d9d9' lw 0.6
plot DATA index 'shares' using (column('run')):(column('share')) with lines lw 1 lc rgb '#808080', \
     '' index 'shares' using (column('run')):(column('share')):(column('mark')):(column('color')) with points ps 1.2 pt variable lc rgb variable
