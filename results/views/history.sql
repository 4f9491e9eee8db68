-- SPDX-License-Identifier: Apache-2.0
-- A point over all runs that measured it, oldest first.
-- :point: its key
-- :host: label of a machine; NULL: all
SELECT r.id AS result, u.id AS run, u.uuid, u.order_key, u.started_utc, u.branch, u.tag, b.git,
       b.version, h.label AS host, e.hash AS environment, r.status, r.verdict, r.reason,
       m.value AS "median [s]", m.ci_low AS "ci_low [s]", m.ci_high AS "ci_high [s]",
       m.min AS "min [s]", m.mad AS "mad [s]", m.n
FROM point AS p
JOIN result AS r ON r.point = p.id
JOIN run AS u ON u.id = r.run
JOIN host AS h ON h.id = u.host
JOIN env_set AS e ON e.id = u.env_set
JOIN build AS b ON b.id = u.build
LEFT JOIN metric AS m ON m.result = r.id AND m.op IS NULL AND m.name = 'time_s'
WHERE p.key = :point AND (:host IS NULL OR h.label = :host)
ORDER BY u.order_key, u.started_utc, u.id
