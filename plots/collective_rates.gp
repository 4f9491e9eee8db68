# SPDX-License-Identifier: Apache-2.0
# title: Rates of all-reduces between ranks
# about: Bus bandwidth over size, the latest result of each point on this machine: what is chosen by size, and libraries' own. Dashed: what copying the bytes once would allow, or the link of a simulated host; a hollow marker is not valid.
# view: points = report_collectives(run)
# shape: collective_rates
# size: 860 460
set format '%g'
set grid xtics ytics lt 1 lc rgb '#d9d9d9' lw 0.6
set format x '%.0b %BB'
set xtics 16
if (guides_rows > 0 && lines_rows > 0) {
    plot DATA index 'guides' using (column('x')):(column('y')):(column('x1')-column('x')):(column('y1')-column('y')) with vectors nohead lw 1.2 dt 2 lc rgb '#808080', \
         '' index 'lines' using (column('x')):(column('y')):(column('x1')-column('x')):(column('y1')-column('y')):(column('color')) with vectors nohead lw 1.5 lc rgb variable, \
         '' index 'points' using (column('x')):(column('y')):(column('mark')):(column('color')) with points ps 1 pt variable lc rgb variable
} else {
    plot DATA index 'points' using (column('x')):(column('y')):(column('mark')):(column('color')) with points ps 1 pt variable lc rgb variable
}
