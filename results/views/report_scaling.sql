-- SPDX-License-Identifier: Apache-2.0
-- Scaling points of the machine of a run, by workload and number of ranks: of each point the latest
-- result. `worth`: the rate as a multiple of the rate per rank with the fewest ranks of the same kind.
-- Points are of one series where nothing but the number of ranks is different. Labels are short:
-- parameters are in them where the workload has several, and settings where labels would be equal.
-- :run
WITH latest AS (
    SELECT r.id AS result, p.workload, p.batch, p.canonical LIKE '% scaling=strong %' AS strong,
           p.canonical, ',' || p.params || ',' AS params, p.threads, r.verdict = 'valid' AS valid, r.reason,
           p.device = 'simulated' AS simulated,
           row_number() OVER (PARTITION BY r.point ORDER BY u.order_key DESC, r.id DESC) AS age
    FROM result AS r
    JOIN point AS p ON p.id = r.point
    JOIN run AS u ON u.id = r.run
    WHERE u.host = (SELECT host FROM run WHERE id = :run) AND r.status = 'ok'
),
scaled AS (
    SELECT l.*, n.value AS ranks, t.value AS throughput, s.value AS time_s, e.value AS exposed_s,
           c.value AS communication_s, b.value AS sent_bytes, k.value AS state_bytes,
           CASE WHEN l.canonical LIKE '% tables=rows%' THEN ', tables in rows'
                WHEN l.canonical LIKE '% tables=split%' THEN ', tables split' ELSE '' END
           || iif(l.canonical LIKE '% moments=split%', ', moments split', '')
           || CASE WHEN l.canonical LIKE '% wire=f16%' THEN ', f16 between ranks'
                   WHEN l.canonical LIKE '% wire=bf16%' THEN ', bf16 between ranks' ELSE '' END
           || iif(l.params LIKE '%,recompute=%', ', recomputed', '')
           || iif(l.canonical LIKE '% norms=all%', ', norms of all ranks', '')
           || iif(l.canonical LIKE '% overlap=no %' OR l.canonical LIKE '% overlap=no',
                  ', no overlap', '')
           || iif(l.canonical LIKE '% tuning=quick%', ', quickly tuned', '')
           AS strategy,
           iif(l.strong, ' strong b' || l.batch, ' b' || CAST(l.batch / n.value AS INTEGER))
           || ' t' || l.threads || iif(l.simulated, ' simulated', '') AS size,
           trim(substr(l.params, 1, instr(l.params, ',ranks=')), ',') AS own_params,
           trim(replace(l.params, ',ranks=' || CAST(n.value AS INTEGER) || ',', ','), ',')
           AS all_params,
           substr(l.canonical, instr(l.canonical, ' backend=')) AS settings
    FROM latest AS l
    JOIN metric AS n ON n.result = l.result AND n.op IS NULL AND n.name = 'ranks'
    JOIN metric AS t ON t.result = l.result AND t.op IS NULL AND t.name = 'throughput'
    JOIN metric AS s ON s.result = l.result AND s.op IS NULL AND s.name = 'time_s'
    LEFT JOIN metric AS e ON e.result = l.result AND e.op IS NULL AND e.name = 'exposed_s'
    LEFT JOIN metric AS c ON c.result = l.result AND c.op IS NULL AND c.name = 'communication_s'
    LEFT JOIN metric AS b ON b.result = l.result AND b.op IS NULL AND b.name = 'sent_bytes'
    LEFT JOIN metric AS k ON k.result = l.result AND k.op IS NULL AND k.name = 'state_bytes'
    WHERE l.age = 1
),
named AS (
    SELECT *, workload || ':' || all_params || size || settings AS series,
           workload || iif(min(own_params) OVER same <> max(own_params) OVER same,
                           ':' || own_params, '') || size || strategy AS name
    FROM scaled
    WINDOW same AS (PARTITION BY workload)
),
based AS (
    SELECT *, first_value(throughput / ranks) OVER (PARTITION BY series ORDER BY ranks) AS one,
           min(series) OVER (PARTITION BY name) <> max(series) OVER (PARTITION BY name) AS shared
    FROM named
)
SELECT result, series, name || iif(shared, ',' || settings, '') AS label, ranks, batch, threads,
       time_s AS "step [s]", throughput AS "throughput [1/s]", throughput / one AS worth,
       throughput / one / ranks AS efficiency, communication_s AS "communication [s]",
       exposed_s AS "exposed [s]", sent_bytes AS "sent [B]", state_bytes AS "kept [B]", valid,
       reason
FROM based
ORDER BY series, ranks
