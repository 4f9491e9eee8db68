-- SPDX-License-Identifier: Apache-2.0
-- The visits of a point that count, in good runs on a machine, oldest run first, with what tells whether they
-- belong to the program and the environment of a comparison, and the levels beside them. A result
-- that tells no visits was one.
-- :point: its key
-- :host: uid of the machine
-- :base, :head: hashes of the environments of BASE and of HEAD
SELECT u.id AS run, u.uuid, b.uid AS build, e.hash AS environment,
       iif(v.result IS NULL, t.value, v.median_s) AS median_s,
       max(iif(l.name = 'hand_over', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS hand_over,
       max(iif(l.name = 'cache_read', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS cache_read,
       max(iif(l.name = 'dram_read', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS dram_read,
       max(iif(l.name = 'multiply_add', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS multiply_add
FROM point AS p
JOIN result AS r ON r.point = p.id
JOIN run AS u ON u.id = r.run
JOIN host AS h ON h.id = u.host
JOIN env_set AS e ON e.id = u.env_set
JOIN build AS b ON b.id = u.build
LEFT JOIN visit AS v ON v.result = r.id
LEFT JOIN metric AS t ON t.result = r.id AND t.op IS NULL AND t.name = 'time_s'
LEFT JOIN level AS l ON l.result = v.result AND l.round = v.round AND l.value > 0
WHERE p.key = :point AND h.uid = :host AND e.hash IN (:base, :head) AND r.status = 'ok'
    AND r.verdict = 'valid' AND u.verdict = 'valid'
    AND iif(v.result IS NULL, t.value, v.median_s) > 0 AND coalesce(v.reason, '') = ''
GROUP BY r.id, v.round
ORDER BY u.order_key, u.started_utc, u.id, v.round
