-- SPDX-License-Identifier: Apache-2.0
-- The point of a result over all runs on the same machine, oldest first.
-- :result
SELECT substr(u.started_utc, 1, 10) AS label, m.value AS "time_s [s]", m.ci_low AS "ci_low [s]",
       m.ci_high AS "ci_high [s]", r.verdict = 'valid' AS valid, r.id = :result AS current,
       b.fraction_of_roof
FROM result AS r
JOIN run AS u ON u.id = r.run
JOIN metric AS m ON m.result = r.id AND m.op IS NULL AND m.name = 'time_s'
LEFT JOIN {lib/history_roof} AS b ON b.result = r.id
WHERE r.point = (SELECT point FROM result WHERE id = :result)
    AND u.host = (SELECT host FROM run WHERE id = (SELECT run FROM result WHERE id = :result))
    AND r.status = 'ok' AND m.value > 0
ORDER BY u.order_key, u.started_utc, u.id
