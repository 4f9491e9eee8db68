-- SPDX-License-Identifier: Apache-2.0
-- Time of every result of a run by kind of operator, the rows of a result together.
-- :run
WITH w AS MATERIALIZED (
    SELECT *, count(*) OVER (PARTITION BY spec) AS same FROM {lib/whole})
SELECT w.result, w.spec || iif(same > 1, ' b' || w.batch, '') ||
           iif(w.mode = 'inference', '', ' ' || w.mode) ||
           iif(w.scenario = 'single_stream', '', ' ' || w.scenario) ||
           iif(w.cache = 'cold', ' cold', '') AS label, s.kind,
       sum(s.time_s) AS "seconds [s]", count(*) AS steps, sum(s.flops) AS flops,
       sum(s.bytes_streamed) AS "bytes [B]"
FROM w JOIN ({lib/step}) AS s ON s.result = w.result
WHERE w.status = 'ok'
GROUP BY w.result, s.kind
ORDER BY w.sequence, sum(s.time_s) DESC
