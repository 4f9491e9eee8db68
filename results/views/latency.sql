-- SPDX-License-Identifier: Apache-2.0
-- Times of a result, a server's with those in the queue, in ascending order with their place in [0, 1]. Of many samples every k-th is
-- shown, about 10000, and of the slowest thousand every one.
-- :result
SELECT (place - 0.5) / total AS quantile, latency_ns * 1e-9 AS "time [s]"
FROM (SELECT latency_ns, row_number() OVER (ORDER BY latency_ns) AS place,
             count(*) OVER () AS total
      FROM (SELECT time_ns + ifnull(queue_ns, 0) AS latency_ns FROM sample
            WHERE result = :result AND phase = 'time'))
WHERE (place - 1) % max(1, total / 10000) = 0 OR place > total - 1000
ORDER BY place
