-- SPDX-License-Identifier: Apache-2.0
-- Operations between ranks on the machine of a run: of each point the latest result. `shown`: what
-- is chosen by size and what libraries have of their own, or, of a backend of which that was not
-- measured, all algorithms. Labels are short: unusual settings are in them where labels would be
-- equal.
-- :run
WITH latest AS (
    SELECT r.id AS result, p.workload AS operation, p.providers AS backend, p.precision,
           p.device = 'simulated' AS simulated, r.verdict = 'valid' AS valid, r.reason,
           substr(p.canonical, instr(p.canonical, ' providers=')) AS how,
           row_number() OVER (PARTITION BY r.point ORDER BY u.order_key DESC, r.id DESC) AS age
    FROM result AS r
    JOIN point AS p ON p.id = r.point
    JOIN run AS u ON u.id = r.run
    WHERE u.host = (SELECT host FROM run WHERE id = :run) AND r.status = 'ok'
          AND p.mode = 'collective'
),
measured AS (
    SELECT l.*, o.kernel AS algorithm,
           max(iif(m.name = 'ranks', m.value, NULL)) AS ranks,
           max(iif(m.name = 'bytes', m.value, NULL)) AS bytes,
           max(iif(m.name = 'in_place', m.value, NULL)) AS in_place,
           max(iif(m.name = 'chosen', m.value, NULL)) AS chosen,
           max(iif(m.name = 'time_s', m.value, NULL)) AS time_s,
           max(iif(m.name = 'bus_rate', m.value, NULL)) AS bus_rate,
           max(iif(m.name = 'roof_rate', m.value, NULL)) AS roof_rate,
           max(iif(m.name = 'model_s', m.value, NULL)) AS model_s,
           max(iif(m.name = 'model_s', m.formula, NULL)) AS model,
           max(iif(m.name = 'model_residual', m.value, NULL)) AS residual
    FROM latest AS l
    JOIN op AS o ON o.result = l.result AND o.idx = 0
    JOIN metric AS m ON m.result = l.result AND m.op IS NULL
    WHERE l.age = 1
    GROUP BY l.result
),
named AS (
    SELECT *, CASE WHEN operation = 'message_trip' THEN 'messages'
                   WHEN chosen THEN 'chosen' ELSE algorithm END AS kind,
           operation <> 'message_trip' AND (chosen OR algorithm GLOB 'library*' OR
               NOT max(chosen) OVER (PARTITION BY operation, backend, precision, how, ranks))
               AS shown
    FROM measured
)
SELECT result, operation, backend, algorithm, kind, ranks, bytes AS "bytes [B]",
       iif(in_place, 'in', 'out') AS place, time_s AS "time [s]", bus_rate AS "bus_rate [B/s]",
       roof_rate AS "roof [B/s]", bus_rate / roof_rate AS of_roof, model_s AS "modelled [s]", model, residual,
       shown, valid, reason, simulated,
       name || iif(min(series) OVER same <> max(series) OVER same, settings, '') AS label, series
FROM (
    SELECT *,
           backend || ' ' || kind || iif(ifnull(in_place, 0), ' in place', '') || ' n' || CAST(ranks AS INTEGER) ||
               iif(precision = 'f32', '', ' ' || precision) || iif(operation IN ('all_reduce', 'message_trip'), '', ' ' || operation)
               AS name,
           operation || ' ' || backend || ' ' || kind || ' ' || ifnull(in_place, 0) || ' ' || ranks || ' ' ||
               precision || how AS series,
           substr(how, length(' providers=' || backend) + 1) AS settings
    FROM named)
WINDOW same AS (PARTITION BY name)
ORDER BY series, bytes
