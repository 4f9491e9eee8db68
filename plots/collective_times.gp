# SPDX-License-Identifier: Apache-2.0
# title: Times of all-reduces and what models make of them
# about: Time over size, out of place, the latest result of each point on this machine. Dashed: messages and bytes of the schedule at their fitted costs; a hollow marker is not valid.
# view: points = report_collectives(run)
# shape: collective_times
# size: 860 460
set format '%g'
set grid xtics ytics lt 1 lc rgb '#d9d9d9' lw 0.6
set format x '%.0b %BB'
set xtics 16
if (guides_rows > 0) {
    plot DATA index 'guides' using (column('x')):(column('y')):(column('x1')-column('x')):(column('y1')-column('y')):(column('color')) with vectors nohead lw 1.2 dt 2 lc rgb variable, \
         '' index 'points' using (column('x')):(column('y')):(column('mark')):(column('color')) with points ps 1 pt variable lc rgb variable
} else {
    plot DATA index 'points' using (column('x')):(column('y')):(column('mark')):(column('color')) with points ps 1 pt variable lc rgb variable
}
