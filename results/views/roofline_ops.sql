-- SPDX-License-Identifier: Apache-2.0
-- Points of a roofline plot: one per step of a result that computes anything. What was counted is
-- NULL where no profiler looked at the steps; see roofline for the names.
-- :result
SELECT idx AS step, name, kind, kernel, flops / ifnull(bytes_compulsory, bytes_streamed)
           AS "intensity [FLOP/B]", flops / time_s AS "flop_rate [FLOP/s]", time_s AS "time [s]",
       flops / (dram_read_bytes + dram_write_bytes) AS "intensity_counted [FLOP/B]",
       flops / dram_read_bytes AS "intensity_read [FLOP/B]", flops_counted,
       flops_counted / flops AS executed_ratio,
       time_s / (SELECT sum(time_s) FROM {lib/step} WHERE result = :result) AS share
FROM {lib/step}
WHERE result = :result AND flops > 0 AND ifnull(bytes_compulsory, bytes_streamed) > 0
    AND time_s > 0
ORDER BY idx
