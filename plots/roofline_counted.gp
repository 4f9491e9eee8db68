# SPDX-License-Identifier: Apache-2.0
# title: Roofline, counted traffic
# about: Each workload over the DRAM traffic that the hardware counted: full over bytes read and written, hollow over bytes read alone.
# view: points = report_points_counted(run)
# view: roofs = report_roofs(run)
# shape: roofline
# size: 860 520
set format '%g'
set grid xtics ytics lt 1 lc rgb '#d9d9d9' lw 0.6
set ytics (sprintf('%g', 10.0**-9) 1)
do for [e=0:16] { set ytics add (sprintf('%g', 10.0**(e-9)) 10.0**e) }
if (y_decades < 3) do for [e=0:16] { set ytics add (sprintf('%g', 2*10.0**(e-9)) 2*10.0**e, sprintf('%g', 5*10.0**(e-9)) 5*10.0**e) }
if (ridge_known) set arrow from ridge_x, graph 0 to ridge_x, ridge_y nohead dt 3 lc rgb '#808080'
if (lines_rows > 0) {
    plot DATA index 'lines' using (column('dashed') == 0 ? column('x0') : NaN):(column('y0')):(column('x1')-column('x0')):(column('y1')-column('y0')) with vectors nohead lw 1.6 lc rgb '#000000', \
         '' index 'lines' using (column('dashed') == 1 ? column('x0') : NaN):(column('y0')):(column('x1')-column('x0')):(column('y1')-column('y0')) with vectors nohead lw 1.4 dt 2 lc rgb '#808080', \
         '' index 'points' using (column('x')):(column('y')):(column('size')):(column('mark')):(column('color')) with points ps variable pt variable lc rgb variable
} else {
    plot DATA index 'points' using (column('x')):(column('y')):(column('size')):(column('mark')):(column('color')) with points ps variable pt variable lc rgb variable
}
