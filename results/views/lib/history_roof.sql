-- SPDX-License-Identifier: Apache-2.0
-- How near each result of one point came to its roof, and what bound it, over all runs.
-- results/views/lib/bound.sql says how; the roofs are those of each run itself.
-- :point: its key, or :result: one of its results.
WITH item AS MATERIALIZED (
    SELECT r.run, r.id AS result, NULL AS idx, p.device, p.precision, p.threads, p.cache,
           max(iif(m.name = 'time_s', m.value, NULL)) AS time_s,
           max(iif(m.name = 'flops' AND m.source = 'model', m.value, NULL)) AS flops,
           max(iif(m.name = 'byte_flops', m.value, NULL)) AS byte_flops,
           max(iif(m.name = 'flops_by_passes', max(-m.value, 0), NULL)) AS removed,
           max(iif(m.name = 'bytes_compulsory', m.value, NULL)) AS bytes,
           sum(iif(m.name IN ('arena_bytes', 'weight_bytes'), m.value, NULL)) AS working_bytes,
           EXISTS (SELECT 1 FROM op WHERE op.result = r.id AND (kernel LIKE '%winograd%' OR
                                                            kernel LIKE '% without padding%'))
               AS fewer_operations,
           max(iif(m.name = 'input_wait_share', m.value, NULL)) AS input_wait_share
    FROM point AS p
    JOIN result AS r ON r.point = p.id
    JOIN metric AS m ON m.result = r.id AND m.op IS NULL
    WHERE r.status = 'ok'
        AND (p.key = :point OR p.id = (SELECT point FROM result WHERE id = :result))
    GROUP BY r.id)
SELECT result, roof_s / time_s AS fraction_of_roof, bound
FROM {lib/bound}
