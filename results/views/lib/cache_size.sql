-- SPDX-License-Identifier: Apache-2.0
-- Size of the largest cache per run and device. Of the CPU a fact of the environment, of another
-- device what it says itself; where that is not known, the largest working set that the ceilings of
-- the caches were measured with.
SELECT u.id AS run, v.device,
       coalesce((SELECT max(CAST(value AS REAL)) FROM env_fact
                 WHERE env_set = u.env_set AND status = 'ok' AND unit = 'B' AND v.device = 'cpu'
                     AND category = 'topology' AND key GLOB 'l[1-4]*'),
                (SELECT value FROM ceiling
                 WHERE run = u.id AND device = v.device AND kind = 'capacity'
                     AND level IN ('L1', 'L2', 'L3', 'L4') ORDER BY level DESC LIMIT 1),
                (SELECT max(working_set_bytes) FROM ceiling
                 WHERE run = u.id AND device = v.device AND level IN ('L1', 'L2', 'L3', 'L4')))
           AS bytes
FROM run AS u
CROSS JOIN (SELECT DISTINCT device FROM point) AS v
