-- SPDX-License-Identifier: Apache-2.0
-- Steps of a result for its roofline; the ten longest have their number for a name.
-- :result
SELECT '#' || idx AS label, idx AS step, kind, flops / ifnull(bytes_compulsory, bytes_streamed) AS
           "intensity [FLOP/B]",
       flops / time_s AS "flop_rate [FLOP/s]", time_s / sum(time_s) OVER () AS share, 1 AS valid,
       row_number() OVER (ORDER BY time_s DESC) <= 10 AS named
FROM {lib/step}
WHERE result = :result AND time_s > 0
ORDER BY time_s DESC
