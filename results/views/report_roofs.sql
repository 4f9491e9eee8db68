-- SPDX-License-Identifier: Apache-2.0
-- The roofs that a report draws: of each device that the run used, or that of one result, the best
-- of each memory level and of each precision that was used there; of a CPU those with as many
-- threads as most of its points. Stated ones whatever the threads. Links to the host are no roofs.
-- :run, :result: of this one
WITH used AS MATERIALIZED (
    SELECT p.device, p.precision, iif(p.device = 'cpu', p.threads, 0) AS threads, r.run
    FROM result AS r JOIN point AS p ON p.id = r.point
    WHERE r.status = 'ok' AND iif(:result IS NULL, r.run = :run, r.id = :result)),
usual AS (
    SELECT device, threads, run, row_number() OVER (PARTITION BY device
                                                    ORDER BY count(*) DESC, threads DESC) AS place
    FROM used
    GROUP BY device, threads, run),
fit AS (
    SELECT c.*, row_number() OVER (PARTITION BY c.device, kind, level, precision, how
                                   ORDER BY value DESC) AS place,
           (SELECT count(DISTINCT device) FROM used) > 1 AS several
    FROM usual AS u
    JOIN ceiling AS c ON c.run = u.run AND c.device = u.device
        AND (c.how = 'datasheet' OR c.threads = u.threads)
    WHERE u.place = 1 AND c.value > 0
        AND (c.kind = 'bandwidth' AND c.level IN ('L1', 'L2', 'L3', 'L4', 'DRAM')
             OR c.kind = 'compute' AND c.precision IN (SELECT precision FROM used
                                                       WHERE used.device = c.device)))
SELECT device, kind, name, how, value, unit, threads, level, precision,
       iif(several, device || ' ', '') ||
           iif(kind = 'compute', precision || iif(pattern IN ('mma', 'wgmma', 'gemm'), ' tensor', '') ||
               ' peak ' || iif(value < 9999.5e9,
               printf('%.4g', value / 1e9) || ' G', printf('%.4g', value / 1e12) || ' T') || unit,
           level || ' ' || iif(value < 999.5e9, printf('%.3g', value / 1e9) || ' GB/s',
                               printf('%.3g', value / 1e12) || ' TB/s')) ||
           iif(how = 'datasheet', ' (datasheet)', '') AS label
FROM fit
WHERE place = 1
ORDER BY kind DESC, value DESC
