-- SPDX-License-Identifier: Apache-2.0
-- Time of every result of a run by kind of operator, the rows of a result together.
-- :run
WITH w AS MATERIALIZED (SELECT * FROM {lib/named})
SELECT w.result, w.label, s.kind, sum(s.time_s) AS "seconds [s]", count(*) AS steps,
       sum(s.flops) AS flops, sum(s.bytes_streamed) AS "bytes [B]"
FROM w JOIN ({lib/step}) AS s ON s.result = w.result
WHERE w.status = 'ok'
GROUP BY w.result, s.kind
ORDER BY w.sequence, sum(s.time_s) DESC
