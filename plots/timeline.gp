# SPDX-License-Identifier: Apache-2.0
# title: A step between ranks
# about: Units of gradients in the last step of one point: thin from ready to started, thick while they were on their way, red where the step stood still for them at its end.
# view: units = report_timeline(result)
# shape: timeline
# size: 860 300
set border 1
unset ytics
set format '%g'
set grid xtics lt 1 lc rgb '#d9d9d9' lw 0.6
plot DATA index 'units' using (column('ready')):(column('row')):(column('queued')):(0) with vectors nohead lw 1.5 lc rgb '#808080', \
     '' index 'units' using (column('started')):(column('row')):(column('moving')):(0) with vectors nohead lw 6 lc rgb '#0072B2', \
     '' index 'units' using (column('stood')):(column('row')):(column('waited')):(0) with vectors nohead lw 2 lc rgb '#D55E00'
