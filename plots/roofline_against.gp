# SPDX-License-Identifier: Apache-2.0
# title: Roofline of two runs
# about: Workloads of HEAD against what its machine can do. Small and grey is BASE; an arrow leads from there to where the same point is now. Dotted: roofs of BASE where they differ.
# view: points = report_points(run)
# view: roofs = report_roofs(run)
# view: base_points = report_points(base)
# view: base_roofs = report_roofs(base)
# shape: roofline
# size: 860 520
set format '%g'
set grid xtics ytics lt 1 lc rgb '#d9d9d9' lw 0.6
set ytics (sprintf('%g', 10.0**-9) 1)
do for [e=0:16] { set ytics add (sprintf('%g', 10.0**(e-9)) 10.0**e) }
if (y_decades < 3) do for [e=0:16] { set ytics add (sprintf('%g', 2*10.0**(e-9)) 2*10.0**e, sprintf('%g', 5*10.0**(e-9)) 5*10.0**e) }
if (ridge_known) set arrow from ridge_x, graph 0 to ridge_x, ridge_y nohead dt 3 lc rgb '#808080'
plot DATA index 'lines' using (column('dashed') == 0 ? column('x0') : NaN):(column('y0')):(column('x1')-column('x0')):(column('y1')-column('y0')) with vectors nohead lw 1.6 lc rgb '#000000', \
     '' index 'lines' using (column('dashed') == 1 ? column('x0') : NaN):(column('y0')):(column('x1')-column('x0')):(column('y1')-column('y0')) with vectors nohead lw 1.4 dt 2 lc rgb '#808080', \
     '' index 'base_lines' using (column('x0')):(column('y0')):(column('x1')-column('x0')):(column('y1')-column('y0')) with vectors nohead lw 1.4 dt 3 lc rgb '#808080', \
     '' index 'points' using (column('x')):(column('y')):(column('size')):(column('mark')):(column('color')) with points ps variable pt variable lc rgb variable, \
     '' index 'base_points' using (column('x')):(column('y')):(column('mark')) with points ps 0.7 pt variable lc rgb '#808080', \
     '' index 'moves' using (column('x0')):(column('y0')):(column('x1')-column('x0')):(column('y1')-column('y0')) with vectors filled head size screen 0.008,20 lw 1.2 lc rgb '#000000'
