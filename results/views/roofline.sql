-- SPDX-License-Identifier: Apache-2.0
-- Points of a roofline plot: one per result of a run, intensity to the right, FLOP/s upwards.
-- Counted intensity uses DRAM traffic as the hardware counted it, where it did; over bytes read
-- alone it is that of the AI Matrix paper. executed_ratio: operations that the hardware counted over
-- the model's; padding, Winograd and masked lanes make them differ.
-- :run, :result: only this one; NULL: all.
SELECT run, result, sequence, spec, device, precision, batch, threads, verdict,
       flops / bytes_compulsory AS "intensity [FLOP/B]", flops / time_s AS "flop_rate [FLOP/s]",
       flops / (dram_read_bytes + dram_write_bytes) AS "intensity_counted [FLOP/B]",
       flops / dram_read_bytes AS "intensity_read [FLOP/B]", flops_counted,
       flops_counted / flops AS executed_ratio,
       flops_counted / (dram_read_bytes + dram_write_bytes) AS "intensity_executed [FLOP/B]",
       time_s AS "time [s]"
FROM {lib/whole}
WHERE status = 'ok' AND flops > 0 AND bytes_compulsory > 0 AND time_s > 0
ORDER BY run, sequence
