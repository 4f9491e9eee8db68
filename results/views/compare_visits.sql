-- SPDX-License-Identifier: Apache-2.0
-- The visits of a result with what the machine itself could do beside them, as slowness: seconds,
-- or one over a rate.
-- :result
SELECT v.round, v.median_s, v.steal_share, v.wait_share, v.clock_hz,
       max(iif(l.name = 'hand_over', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS hand_over,
       max(iif(l.name = 'cache_read', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS cache_read,
       max(iif(l.name = 'dram_read', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS dram_read,
       max(iif(l.name = 'multiply_add', iif(l.better = 'lower', l.value, 1 / l.value), NULL))
           AS multiply_add
FROM visit AS v
LEFT JOIN level AS l ON l.result = v.result AND l.round = v.round AND l.value > 0
WHERE v.result = :result
GROUP BY v.round
ORDER BY v.round
