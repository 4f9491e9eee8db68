-- SPDX-License-Identifier: Apache-2.0
-- Points of a roofline plot: one per step of a result that computes anything.
-- :result
SELECT idx AS step, name, kind, kernel, flops / ifnull(bytes_compulsory, bytes_streamed)
           AS "intensity [FLOP/B]", flops / time_s AS "flop_rate [FLOP/s]", time_s AS "time [s]",
       time_s / (SELECT sum(time_s) FROM {lib/step} WHERE result = :result) AS share
FROM {lib/step}
WHERE result = :result AND flops > 0 AND ifnull(bytes_compulsory, bytes_streamed) > 0
    AND time_s > 0
ORDER BY idx
