-- SPDX-License-Identifier: Apache-2.0
-- The results of a run that have samples, with the names of the report and what was counted.
-- :run, :result: only this one; NULL: all.
SELECT result, run, label, verdict = 'valid' AS valid, scenario, flops, flops_counted,
       dram_read_bytes AS "dram_read [B]", dram_write_bytes AS "dram_write [B]"
FROM {lib/named}
WHERE status = 'ok'
ORDER BY run, sequence
