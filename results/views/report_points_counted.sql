-- SPDX-License-Identifier: Apache-2.0
-- Points of the roofline of a run over the DRAM traffic that the hardware counted, twice per result:
-- over bytes read and written, and, not named and hollow (valid 0), over bytes read alone, as the AI
-- Matrix paper has it. No row where nothing was counted.
-- :run
WITH n AS MATERIALIZED (
    SELECT result, key, label, domain, flops, time_s, dram_read_bytes, dram_write_bytes,
           time_s / sum(time_s) OVER () AS share
    FROM {lib/named}
    WHERE status = 'ok' AND dram_read_bytes > 0 AND flops > 0)
SELECT result, key, label, domain, flops / (dram_read_bytes + dram_write_bytes) AS
           "intensity [FLOP/B]",
       flops / time_s AS "flop_rate [FLOP/s]", share, 1 AS valid, 1 AS named
FROM n
WHERE dram_write_bytes IS NOT NULL
UNION ALL
SELECT result, key, label, domain, flops / dram_read_bytes, flops / time_s, share, 0, 0
FROM n
ORDER BY 9 DESC, 7 DESC, 1
