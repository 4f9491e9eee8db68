-- SPDX-License-Identifier: Apache-2.0
-- Points that have results, by what a person types for one.
-- :word: key or its beginning, workload, workload:params, or NULL: all
SELECT p.key, p.workload, p.params, p.mode, p.device, p.precision, p.batch, p.threads, p.scenario,
       p.cache, p.providers, p.canonical, count(r.id) AS results,
       (SELECT h.label FROM result AS l JOIN run AS u ON u.id = l.run JOIN host AS h ON h.id = u.host
        WHERE l.point = p.id ORDER BY u.started_utc DESC, u.id DESC LIMIT 1) AS host,
       count(DISTINCT u.host) AS hosts
FROM point AS p
JOIN result AS r ON r.point = p.id
JOIN run AS u ON u.id = r.run
WHERE :word IS NULL OR p.key = :word OR p.workload = :word
      OR p.workload || ':' || p.params = :word
      OR (length(:word) >= 4 AND substr(p.key, 1, length(:word)) = :word)
GROUP BY p.id
ORDER BY p.key = :word DESC, p.workload, p.params, p.batch, p.threads, p.key
