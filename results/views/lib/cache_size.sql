-- SPDX-License-Identifier: Apache-2.0
-- Size of the largest cache per run: a fact of the environment, or, where that is not known, the
-- largest working set that the ceilings of the caches were measured with.
SELECT u.id AS run,
       coalesce((SELECT max(CAST(value AS REAL)) FROM env_fact
                 WHERE env_set = u.env_set AND status = 'ok' AND unit = 'B'
                     AND category = 'topology' AND key GLOB 'l[1-4]*'),
                (SELECT max(working_set_bytes) FROM ceiling
                 WHERE run = u.id AND level IN ('L1', 'L2', 'L3', 'L4'))) AS bytes
FROM run AS u
