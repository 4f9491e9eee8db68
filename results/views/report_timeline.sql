-- SPDX-License-Identifier: Apache-2.0
-- Exchanges in the last step of a result between ranks, units of gradients and all others: when each was ready, under way and
-- done, seconds after the step began on its rank; rank by rank.
-- :result
SELECT o.idx AS unit, k.value AS rank, a.value AS "ready [s]", b.value AS "started [s]",
       c.value AS "ended [s]", w.value AS "waited [s]", s.value AS "bytes [B]",
       (SELECT value FROM metric WHERE result = :result AND op IS NULL AND name = 'time_s')
       AS "step [s]"
FROM op AS o
JOIN metric AS k ON k.result = :result AND k.op = o.idx AND k.name = 'rank'
JOIN metric AS a ON a.result = :result AND a.op = o.idx AND a.name = 'ready_s'
JOIN metric AS b ON b.result = :result AND b.op = o.idx AND b.name = 'started_s'
JOIN metric AS c ON c.result = :result AND c.op = o.idx AND c.name = 'ended_s'
JOIN metric AS w ON w.result = :result AND w.op = o.idx AND w.name = 'waited_s'
JOIN metric AS s ON s.result = :result AND s.op = o.idx AND s.name = 'bytes'
WHERE o.result = :result
ORDER BY k.value, o.idx
