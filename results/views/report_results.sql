-- SPDX-License-Identifier: Apache-2.0
-- The results of a run that have samples, with the names of the report and what was counted.
-- :run, :result: only this one; NULL: all.
WITH w AS MATERIALIZED (
    SELECT *, count(*) OVER (PARTITION BY run, spec) AS same FROM {lib/whole})
SELECT result, spec || iif(same > 1, ' b' || batch, '') ||
           iif(precision = 'f32', '', ' ' || precision) ||
           iif(mode = 'inference', '', ' ' || mode) ||
           iif(scenario = 'single_stream', '', ' ' || scenario) ||
           iif(cache = 'cold', ' cold', '') AS label, verdict = 'valid' AS valid,
       flops, flops_counted, dram_read_bytes AS "dram_read [B]",
       dram_write_bytes AS "dram_write [B]"
FROM w
WHERE status = 'ok'
ORDER BY run, sequence
