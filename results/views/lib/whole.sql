-- SPDX-License-Identifier: Apache-2.0
-- One row per result: its point, its verdict, its metrics side by side. What was counted is that of
-- the device: on a GPU CUPTI's, by ranges before by samples, and NVML's energy; on a CPU the others.
-- Operations between ranks (ridge bench collectives) are no executions of a graph and not among them.
-- :run, :result: only this one; NULL: all.
SELECT r.id AS result, r.run, r.sequence, r.status, r.verdict, r.reason, r.verify_error,
       r.verify_bound, r.verify_how, r.stop_reason, r.started_utc, r.wall_s, r.reproduce,
       p.id AS point, p.key, p.canonical, p.workload, p.params, p.domain, p.mode, p.device, p.precision,
       p.batch, p.threads, p.scenario, p.cache, p.providers,
       p.workload || iif(p.params = '', '', ':' || p.params) AS spec,
       max(iif(m.name = 'time_s', m.value, NULL)) AS time_s,
       max(iif(m.name = 'time_s', m.min, NULL)) AS min_s,
       max(iif(m.name = 'time_s', m.mad, NULL)) AS mad_s,
       max(iif(m.name = 'time_s', m.ci_low, NULL)) AS ci_low_s,
       max(iif(m.name = 'time_s', m.ci_high, NULL)) AS ci_high_s,
       max(iif(m.name = 'time_s', m.n, NULL)) AS n,
       max(iif(m.name = 'latency_p50_s', m.value, NULL)) AS p50_s,
       max(iif(m.name = 'latency_p90_s', m.value, NULL)) AS p90_s,
       max(iif(m.name = 'latency_p99_s', m.value, NULL)) AS p99_s,
       max(iif(m.name = 'throughput', m.value, NULL)) AS throughput,
       max(iif(m.name = 'input_wait_share', m.value, NULL)) AS input_wait_share,
       max(iif(m.name = 'server_rate', m.value, NULL)) AS server_rate,
       max(iif(m.name = 'flops' AND m.source = 'model', m.value, NULL)) AS flops,
       max(iif(m.name = 'flops' AND m.source = iif(p.device GLOB 'cuda*', 'cupti', 'papi'),
               m.value, NULL)) AS flops_counted,
       max(iif(m.name = 'byte_flops', m.value, NULL)) AS byte_flops,
       max(iif(m.name = 'flops_by_passes', m.value, NULL)) AS flops_by_passes,
       max(iif(m.name = 'flops_by_passes', m.formula, NULL)) AS passes,
       max(iif(m.name = 'bytes_compulsory', m.value, NULL)) AS bytes_compulsory,
       max(iif(m.name = 'bytes_streamed', m.value, NULL)) AS bytes_streamed,
       iif(p.device GLOB 'cuda*',
           coalesce(max(iif(m.name = 'dram_read_bytes' AND m.source = 'cupti', m.value, NULL)),
                    max(iif(m.name = 'dram_read_bytes' AND m.source = 'cupti_pm', m.value, NULL))),
           max(iif(m.name = 'dram_read_bytes' AND m.source NOT GLOB 'cupti*', m.value, NULL)))
           AS dram_read_bytes,
       iif(p.device GLOB 'cuda*',
           coalesce(max(iif(m.name = 'dram_write_bytes' AND m.source = 'cupti', m.value, NULL)),
                    max(iif(m.name = 'dram_write_bytes' AND m.source = 'cupti_pm', m.value, NULL))),
           max(iif(m.name = 'dram_write_bytes' AND m.source NOT GLOB 'cupti*', m.value, NULL)))
           AS dram_write_bytes,
       max(iif(m.name = 'flop_rate', m.value, NULL)) AS flop_rate,
       max(iif(m.name = 'fraction_of_peak', m.value, NULL)) AS fraction_of_peak,
       max(iif(m.name = 'arena_bytes', m.value, NULL)) AS arena_bytes,
       max(iif(m.name = 'weight_bytes', m.value, NULL)) AS weight_bytes,
       max(iif(m.name = 'peak_rss_bytes', m.value, NULL)) AS peak_rss_bytes,
       max(iif(m.name = 'reference_steps', m.value, NULL)) AS reference_steps,
       max(iif(m.name = 'reference_time_share', m.value, NULL)) AS reference_time_share,
       max(iif(m.name = 'energy_j' AND (m.source = 'nvml') = (p.device GLOB 'cuda*'), m.value,
               NULL)) AS energy_j
FROM result AS r
JOIN point AS p ON p.id = r.point
LEFT JOIN metric AS m ON m.result = r.id AND m.op IS NULL
WHERE (:run IS NULL OR r.run = :run) AND (:result IS NULL OR r.id = :result)
    AND p.mode <> 'collective'
GROUP BY r.id
