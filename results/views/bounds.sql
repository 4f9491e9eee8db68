-- SPDX-License-Identifier: Apache-2.0
-- What limits each result, and how many seconds lie between it and its roof.
-- results/views/lib/bound.sql says how. Bytes are the compulsory ones: a bound from below.
-- :run, :result: only this one; NULL: all.
WITH item AS MATERIALIZED (
    SELECT run, result, sequence, NULL AS idx, key, spec, workload, mode, device, precision, batch,
           threads, scenario, cache, verdict, time_s, flops, byte_flops,
           max(-flops_by_passes, 0) AS removed, bytes_compulsory AS bytes,
           arena_bytes + weight_bytes AS working_bytes, input_wait_share,
           EXISTS (SELECT 1 FROM op WHERE op.result = w.result AND (kernel LIKE '%winograd%' OR
                                                            kernel LIKE '% without padding%'))
               AS fewer_operations
    FROM {lib/whole} AS w
    WHERE status = 'ok')
SELECT run, result, sequence, key, spec, workload, mode, device, precision, batch, threads,
       scenario, cache, verdict, bound, note, time_s AS "time [s]", roof_s AS "roof_time [s]",
       recoverable_s AS "recoverable [s]", roof_s / time_s AS fraction_of_roof,
       compute_s AS "compute_time [s]", memory_s AS "memory_time [s]", flops,
       removed AS flops_removed, bytes AS "bytes [B]",
       flops / bytes AS "intensity [FLOP/B]", flops / time_s AS "flop_rate [FLOP/s]",
       peak AS "peak [FLOP/s]", dram AS "dram_bandwidth [B/s]", peak / dram AS "ridge [FLOP/B]",
       working_bytes AS "working_set [B]", cache_bytes AS "largest_cache [B]",
       fewer_operations
FROM {lib/bound}
ORDER BY run, sequence
