# SPDX-License-Identifier: Apache-2.0
# title: History
# about: Median time of one point in each run of the database, with its 95 % interval, oldest run first; a hollow marker is not valid.
# view: runs = report_history(result)
# shape: history
# size: 860 260
set format '%g'
unset xtics
set grid ytics lt 1 lc rgb '#d9d9d9' lw 0.6
plot DATA index 'runs' using (column('run')):(column('time')) with lines lw 1 lc rgb '#808080', \
     '' index 'runs' using (column('run')):(column('time')):(column('low')):(column('high')) with yerrorbars pt 0 lw 1.5 lc rgb '#000000', \
     '' index 'runs' using (column('run')):(column('time')):(column('mark')):(column('color')) with points ps 1.2 pt variable lc rgb variable
