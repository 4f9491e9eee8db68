-- SPDX-License-Identifier: Apache-2.0
-- The points of a run with what tells, beside the time, whether two runs did the same work, and
-- the rate of the scenarios that have one.
-- :run
SELECT r.id AS result, p.key, p.canonical, p.workload, p.params, p.mode, p.device, p.precision,
       p.batch, p.threads, p.scenario, p.cache, p.providers, r.status, r.verdict, r.reason,
       r.verify_error, r.verify_bound, r.verify_how = 'not verified in turns' AS unverified,
       (SELECT value FROM metric WHERE result = r.id AND op IS NULL AND name = 'flops'
        AND source = 'model') AS flops,
       (SELECT value FROM metric WHERE result = r.id AND op IS NULL AND name = 'bytes_streamed')
           AS "bytes_streamed [B]",
       (SELECT value FROM metric WHERE result = r.id AND op IS NULL AND name = 'bytes_compulsory')
           AS "bytes_compulsory [B]",
       (SELECT sum(value) FROM metric WHERE result = r.id AND op IS NULL
        AND source = iif(p.device GLOB 'cuda*', 'cupti', 'papi')
        AND name IN ('dram_read_bytes', 'dram_write_bytes')) AS "dram [B]",
       (SELECT sum(context_switches) * 1e9 / sum(time_ns) FROM sample WHERE result = r.id
        AND phase = 'time') AS "switches [1/s]",
       (SELECT value FROM metric WHERE result = r.id AND op IS NULL AND name = 'steal_share')
           AS steal_share,
       iif(p.scenario IN ('offline', 'server'),
           (SELECT value FROM metric WHERE result = r.id AND op IS NULL
            AND name = iif(p.scenario = 'server', 'server_rate', 'throughput')), NULL)
           AS "rate [1/s]"
FROM result AS r
JOIN point AS p ON p.id = r.point
WHERE r.run = :run
ORDER BY r.sequence
