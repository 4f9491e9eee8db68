-- SPDX-License-Identifier: Apache-2.0
-- Units of gradients of the last result in which ranks of this workload, with this batch each, were
-- measured together: of its rank 0, and how long a step computed.
-- :workload :params :batch
WITH measured AS (
    SELECT r.id AS result, p.threads, c.value AS computing_s
    FROM result AS r
    JOIN point AS p ON p.id = r.point
    JOIN run AS u ON u.id = r.run
    JOIN metric AS n ON n.result = r.id AND n.op IS NULL AND n.name = 'ranks'
    JOIN metric AS c ON c.result = r.id AND c.op IS NULL AND c.name = 'computing_s'
    WHERE r.status = 'ok' AND p.device <> 'simulated' AND p.workload = :workload AND n.value > 1
          AND p.params = :params || iif(:params = '', '', ',') || 'ranks=' || CAST(n.value AS INTEGER)
          AND p.batch = :batch * CAST(n.value AS INTEGER)
    ORDER BY u.order_key DESC, r.id DESC
    LIMIT 1
)
SELECT m.computing_s AS "computing [s]", m.threads, b.value AS "bytes [B]",
       y.value AS "ready [s]", w.value AS "waited [s]"
FROM measured AS m
JOIN metric AS k ON k.result = m.result AND k.name = 'rank' AND k.value = 0
JOIN metric AS b ON b.result = m.result AND b.op = k.op AND b.name = 'bytes'
JOIN metric AS y ON y.result = m.result AND y.op = k.op AND y.name = 'ready_s'
JOIN metric AS w ON w.result = m.result AND w.op = k.op AND w.name = 'waited_s'
ORDER BY y.value, k.op
