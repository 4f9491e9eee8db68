-- SPDX-License-Identifier: Apache-2.0
-- What ranks that learn together did in a step: times as means over the ranks, bytes and messages of the rank
-- with most. No row for a result of one process.
-- :result
SELECT max(value) FILTER (WHERE name = 'ranks') AS ranks,
       max(value) FILTER (WHERE name = 'time_s') AS "step [s]",
       max(value) FILTER (WHERE name = 'computing_s') AS "computing [s]",
       max(value) FILTER (WHERE name = 'communication_s') AS "moving [s]",
       max(value) FILTER (WHERE name = 'exposed_s') AS "exposed [s]",
       max(value) FILTER (WHERE name = 'input_wait_s') AS "input [s]",
       max(value) FILTER (WHERE name = 'sent_bytes') AS "sent [B]",
       CAST(max(value) FILTER (WHERE name = 'messages') AS INTEGER) AS messages,
       max(value) FILTER (WHERE name = 'state_bytes') AS "kept [B]"
FROM metric
WHERE result = :result AND op IS NULL
HAVING ranks IS NOT NULL
