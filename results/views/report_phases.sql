-- SPDX-License-Identifier: Apache-2.0
-- What the phases of a training step took, and what each leaves in memory for the next ones: a row per
-- phase; none for an inference.
-- :result
WITH phase(name, position, left) AS (
    VALUES ('forward', 0, 'activation_bytes'), ('backward', 1, 'gradient_bytes'),
           ('update', 2, 'state_bytes'))
SELECT phase.name AS phase, t.value AS "time [s]", f.value AS flops, b.value AS "bytes [B]",
       l.value AS "left [B]"
FROM phase
JOIN metric AS t ON t.result = :result AND t.op IS NULL AND t.name = phase.name || '_time_s'
LEFT JOIN metric AS f ON f.result = :result AND f.op IS NULL AND f.name = phase.name || '_flops'
LEFT JOIN metric AS b ON b.result = :result AND b.op IS NULL AND b.name = phase.name || '_bytes'
LEFT JOIN metric AS l ON l.result = :result AND l.op IS NULL AND l.name = phase.left
ORDER BY phase.position
