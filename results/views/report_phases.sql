-- SPDX-License-Identifier: Apache-2.0
-- What the phases of a training step took: a row per phase; none for an inference.
-- :result
WITH phase(name, position) AS (VALUES ('forward', 0), ('backward', 1), ('update', 2))
SELECT phase.name AS phase, t.value AS "time [s]", f.value AS flops, b.value AS "bytes [B]"
FROM phase
JOIN metric AS t ON t.result = :result AND t.op IS NULL AND t.name = phase.name || '_time_s'
LEFT JOIN metric AS f ON f.result = :result AND f.op IS NULL AND f.name = phase.name || '_flops'
LEFT JOIN metric AS b ON b.result = :result AND b.op IS NULL AND b.name = phase.name || '_bytes'
ORDER BY phase.position
