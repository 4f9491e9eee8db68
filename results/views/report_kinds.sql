-- SPDX-License-Identifier: Apache-2.0
-- Time of every result of a run by kind of operator, the rows of a result together.
-- SQLite looks no result up in what window functions made: without the GROUP BY in w it would read
-- all results for every step. Each has one row there.
-- :run
WITH w AS MATERIALIZED (SELECT result, label, sequence FROM {lib/named} WHERE status = 'ok'
                        GROUP BY result)
SELECT w.result, w.label, s.kind, sum(s.time_s) AS "seconds [s]", count(*) AS steps,
       sum(s.flops) AS flops, sum(s.bytes_streamed) AS "bytes [B]"
FROM ({lib/step}) AS s CROSS JOIN w ON w.result = s.result
GROUP BY w.result, s.kind
ORDER BY w.sequence, sum(s.time_s) DESC
