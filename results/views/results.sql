-- SPDX-License-Identifier: Apache-2.0
-- One row per result, in the order of the plan.
-- :run: only this run; NULL: all.
SELECT result, run, sequence, key, spec, workload, params, domain, mode, device, precision, batch,
       threads, scenario, cache, providers, apart, status, verdict, reason, time_s AS "median [s]",
       min_s AS "min [s]", p50_s AS "p50 [s]", p90_s AS "p90 [s]", p99_s AS "p99 [s]", mad_s AS "mad [s]",
       ci_low_s AS "ci_low [s]", ci_high_s AS "ci_high [s]", n,
       throughput AS "throughput [1/s]", server_rate AS "server_rate [1/s]", flops,
       flops_by_passes, coalesce(passes, '') AS passes,
       bytes_compulsory AS "bytes_compulsory [B]", bytes_streamed AS "bytes_streamed [B]",
       flops_counted, flops_counted / flops AS executed_ratio,
       dram_read_bytes AS "dram_read [B]", dram_write_bytes AS "dram_write [B]",
       flop_rate AS "flop_rate [FLOP/s]", fraction_of_peak,
       arena_bytes AS "arena [B]", weight_bytes AS "weights [B]", peak_rss_bytes AS "peak_rss [B]",
       energy_j AS "energy [J]", verify_error, verify_bound, verify_how, stop_reason, started_utc,
       wall_s AS "wall [s]", reproduce, reference_steps, reference_time_share,
       coalesce((SELECT group_concat(kind, ', ')
                 FROM (SELECT DISTINCT kind FROM op
                       WHERE op.result = w.result AND provider = 'reference' ORDER BY kind)), '')
           AS reference_ops
FROM {lib/named} AS w
ORDER BY run, sequence
