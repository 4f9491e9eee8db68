-- SPDX-License-Identifier: Apache-2.0
-- Steps by the seconds that lie between them and their roof, the most first.
-- A step's data count as cached when all that it touches fits the largest cache.
-- results/views/lib/bound.sql says how.
-- :run, :result: only this one; NULL: all. :limit: so many; NULL: all.
WITH item AS MATERIALIZED (
    SELECT s.run, s.result, s.idx, p.workload, p.workload || iif(p.params = '', '', ':' || p.params)
               AS spec, p.device, p.precision, p.batch, p.threads, p.cache, s.name, s.kind, s.shape,
           s.kernel, s.provider, s.time_s, s.flops, s.byte_flops,
           NULL AS removed,
           ifnull(s.bytes_compulsory, s.bytes_streamed)
               AS bytes, ifnull(s.bytes_compulsory, s.bytes_streamed) AS working_bytes,
           s.kernel LIKE '%winograd%' OR s.kernel LIKE '% without padding%'
               AS fewer_operations, NULL AS input_wait_share
    FROM {lib/step} AS s
    JOIN result AS r ON r.id = s.result
    JOIN point AS p ON p.id = r.point
    WHERE r.status = 'ok')
SELECT run, result, spec, workload, device, precision, batch, threads, idx AS step, name, kind,
       shape, kernel, provider, bound, note, time_s AS "time [s]", roof_s AS "roof_time [s]",
       recoverable_s AS "recoverable [s]", roof_s / time_s AS fraction_of_roof, flops,
       bytes AS "bytes [B]", flops / bytes AS "intensity [FLOP/B]",
       flops / time_s AS "flop_rate [FLOP/s]"
FROM {lib/bound}
ORDER BY recoverable_s IS NULL, recoverable_s DESC, result, idx
LIMIT ifnull(:limit, -1)
