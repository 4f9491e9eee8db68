-- SPDX-License-Identifier: Apache-2.0
-- The steps of a result with their kernels and times.
-- :result
SELECT o.idx, o.name, o.kind, o.kernel, o.provider, m.value AS "time [s]"
FROM op AS o
LEFT JOIN metric AS m ON m.result = o.result AND m.op = o.idx AND m.name = 'time_s'
WHERE o.result = :result
ORDER BY o.idx
