-- SPDX-License-Identifier: Apache-2.0
-- The roofs that a report draws: the best of each memory level and of each precision that the run
-- used, with as many threads as most of its points; stated ones whatever the threads.
-- :run
WITH used AS (
    SELECT p.threads, count(*) AS points
    FROM result AS r JOIN point AS p ON p.id = r.point
    WHERE r.run = :run AND r.status = 'ok'
    GROUP BY p.threads),
fit AS (
    SELECT c.*, row_number() OVER (PARTITION BY kind, level, precision, how
                                   ORDER BY value DESC) AS place
    FROM ceiling AS c
    WHERE c.run = :run AND c.value > 0
        AND (c.how = 'datasheet' OR c.threads = (SELECT threads FROM used
                                                 ORDER BY points DESC, threads DESC LIMIT 1))
        AND (c.kind = 'bandwidth' OR c.precision IN (
             SELECT p.precision FROM result AS r JOIN point AS p ON p.id = r.point
             WHERE r.run = :run)))
SELECT kind, name, how, value, unit, threads, level, precision,
       iif(kind = 'compute', precision || ' peak ' || iif(value < 9999.5e9,
               printf('%.4g', value / 1e9) || ' GFLOP/s', printf('%.4g', value / 1e12) || ' TFLOP/s'),
           level || ' ' || iif(value < 999.5e9, printf('%.3g', value / 1e9) || ' GB/s',
                               printf('%.3g', value / 1e12) || ' TB/s')) ||
           iif(how = 'datasheet', ' (datasheet)', '') AS label
FROM fit
WHERE place = 1
ORDER BY kind DESC, value DESC
