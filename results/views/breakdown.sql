-- SPDX-License-Identifier: Apache-2.0
-- Time of a result by kind of operator, the largest first.
-- :result
SELECT kind, count(*) AS steps, sum(time_s) AS "time [s]",
       sum(time_s) / sum(sum(time_s)) OVER () AS share, sum(flops) AS flops,
       sum(bytes_streamed) AS "bytes_streamed [B]", sum(flops) / sum(time_s) AS "flop_rate [FLOP/s]"
FROM {lib/step}
WHERE result = :result
GROUP BY kind
ORDER BY sum(time_s) DESC, kind
