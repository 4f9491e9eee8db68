-- SPDX-License-Identifier: Apache-2.0
-- The steps of a result: what they are, which kernel ran them, what they took.
-- :result
SELECT idx AS step, name, kind, shape, kernel, provider, time_s AS "time [s]",
       time_s / sum(time_s) OVER () AS share, flops, bytes_streamed AS "bytes_streamed [B]",
       bytes_compulsory AS "bytes_compulsory [B]", flops / time_s AS "flop_rate [FLOP/s]",
       flops / bytes_compulsory AS "intensity [FLOP/B]", flops_counted,
       flops_counted / flops AS executed_ratio, dram_read_bytes AS "dram_read [B]",
       dram_write_bytes AS "dram_write [B]"
FROM {lib/step}
WHERE result = :result
ORDER BY idx
