-- SPDX-License-Identifier: Apache-2.0
-- One row per result and metric; a result without metrics (skipped, failed) has one row as well.
-- :run: only this run; NULL: all.
-- :ops: not 0: metrics of single steps too.
-- :samples: not 0: raw times beside the metric time_s, as a JSON array of nanoseconds, and the
-- visit of each. Visits and their levels are JSON, too: an infinity in them is null, since SQLite
-- would write Inf, which is no JSON.
SELECT u.uuid AS run, u.started_utc AS run_started_utc, h.label AS host, e.hash AS environment,
       b.version, b.git, b.config, b.compiler, u.suite, u.branch, u.tag, r.sequence,
       p.key AS point, p.canonical, p.workload, p.params, p.domain, p.mode, p.device, p.precision,
       p.batch, p.threads, p.scenario, p.cache, p.providers, r.status, r.verdict, r.reason,
       r.verify_error, r.verify_bound, r.started_utc, r.wall_s, m.op AS step,
       o.name AS step_name, o.kind AS step_kind, o.kernel AS step_kernel, m.name AS metric,
       m.unit, m.source, m.better, m.value, m.reason AS value_reason, m.formula, m.n, m.min, m.q1,
       m.q3, m.max, m.mad, m.ci_low, m.ci_high, r.reproduce,
       iif(ifnull(:samples, 0) AND m.name = 'time_s' AND m.op IS NULL,
           (SELECT json_group_array(time_ns) FROM sample
            WHERE result = r.id AND phase = 'time'), NULL) AS samples_ns,
       iif(ifnull(:samples, 0) AND m.name = 'time_s' AND m.op IS NULL,
           (SELECT json_group_array(visit) FROM sample
            WHERE result = r.id AND phase = 'time'), NULL) AS samples_visit,
       u.rounds, u.order_seed, u.turns_uuid,
       (SELECT json_group_array(json_object('round', round, 'started_utc', started_utc,
                   'samples', samples, 'median_s', iif(abs(median_s) < 9e999, median_s, NULL),
                   'ci_low_s', iif(abs(ci_low_s) < 9e999, ci_low_s, NULL),
                   'ci_high_s', iif(abs(ci_high_s) < 9e999, ci_high_s, NULL),
                   'steal_share', iif(abs(steal_share) < 9e999, steal_share, NULL),
                   'wait_share', iif(abs(wait_share) < 9e999, wait_share, NULL),
                   'clock_hz', iif(abs(clock_hz) < 9e999, clock_hz, NULL),
                   'reason', v.reason, 'levels',
                   (SELECT json_group_array(json_object('name', name, 'unit', unit,
                               'value', iif(abs(value) < 9e999, value, NULL), 'reason', l.reason))
                    FROM level AS l WHERE l.result = v.result AND l.round = v.round)))
        FROM visit AS v WHERE v.result = r.id) AS visits
FROM result AS r
JOIN run AS u ON u.id = r.run
JOIN host AS h ON h.id = u.host
JOIN env_set AS e ON e.id = u.env_set
JOIN build AS b ON b.id = u.build
JOIN point AS p ON p.id = r.point
LEFT JOIN metric AS m ON m.result = r.id AND (m.op IS NULL OR ifnull(:ops, 0))
LEFT JOIN op AS o ON o.result = r.id AND o.idx = m.op
WHERE :run IS NULL OR r.run = :run
ORDER BY r.run, r.sequence, m.id
