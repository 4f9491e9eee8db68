-- SPDX-License-Identifier: Apache-2.0
-- Numbers that could not be had, and why; equal reasons together.
-- :run: only this run; NULL: all.
SELECT 'metric' AS what, m.name, m.source, m.reason, count(*) AS count, count(DISTINCT r.id)
           AS results
FROM result AS r
JOIN metric AS m ON m.result = r.id
WHERE m.value IS NULL AND (:run IS NULL OR r.run = :run)
GROUP BY m.name, m.source, m.reason
UNION ALL
SELECT 'ceiling', name, device, reason, count(*), 0
FROM ceiling
WHERE value IS NULL AND (:run IS NULL OR run = :run)
GROUP BY name, device, reason
UNION ALL
SELECT 'fact', f.category || ' ' || f.key, f.source, f.status, count(*), 0
FROM run AS u JOIN env_fact AS f ON f.env_set = u.env_set
WHERE f.status <> 'ok' AND (:run IS NULL OR u.id = :run)
GROUP BY f.category, f.key, f.source, f.status
ORDER BY 1 DESC, 2, 3
