-- SPDX-License-Identifier: Apache-2.0
-- Facts in which two runs differ; a fact that only one has is NULL in the other.
-- :a, :b: the runs
WITH fact AS (
    SELECT u.id AS run, f.category, f.key, f.class, f.unit,
           iif(f.status = 'ok', f.value, '(' || f.status || ')') AS value
    FROM run AS u JOIN env_fact AS f ON f.env_set = u.env_set
    WHERE u.id IN (:a, :b)
    UNION ALL
    SELECT u.id, 'build', n.key, 'build', '',
           CASE n.key WHEN 'uid' THEN b.uid WHEN 'version' THEN b.version WHEN 'git' THEN b.git
               WHEN 'config' THEN b.config WHEN 'compiler' THEN b.compiler
               WHEN 'flags' THEN b.flags ELSE b.features END
    FROM run AS u JOIN build AS b ON b.id = u.build
    JOIN (SELECT 'uid' AS key UNION ALL VALUES ('version'), ('git'), ('config'), ('compiler'),
              ('flags'), ('features')) AS n
    WHERE u.id IN (:a, :b))
SELECT category, key, max(iif(run = :a, value, NULL)) AS a, max(iif(run = :b, value, NULL)) AS b,
       max(unit) AS unit, max(class) AS class
FROM fact
GROUP BY category, key
HAVING max(iif(run = :a, value, NULL)) IS NOT max(iif(run = :b, value, NULL))
ORDER BY category, key
