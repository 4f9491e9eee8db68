-- SPDX-License-Identifier: Apache-2.0
-- The machine and its settings in a run; facts that change by themselves before and after it.
-- :run
SELECT category, key, value, '' AS value_after, unit, class, status, source
FROM env_fact
WHERE env_set = (SELECT env_set FROM run WHERE id = :run)
UNION ALL
SELECT b.category, b.key, b.value, ifnull(a.value, ''), b.unit, 'volatile', b.status, b.source
FROM run_fact AS b
LEFT JOIN run_fact AS a
    ON a.run = b.run AND a.phase = 'after' AND a.category = b.category AND a.key = b.key
WHERE b.run = :run AND b.phase = 'before'
ORDER BY 1, 2
