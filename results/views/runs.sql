-- SPDX-License-Identifier: Apache-2.0
-- All runs, the latest first.
SELECT u.id AS run, u.uuid, u.started_utc, u.ended_utc, u.state, u.verdict, u.reason,
       h.label AS host, e.hash AS environment, b.version, b.git, b.config, b.compiler, u.command,
       u.suite, u.branch, u.tag, u.order_key, u.planned, ifnull(c.results, 0) AS results,
       ifnull(c.ok, 0) AS ok, ifnull(c.wrong, 0) AS wrong, ifnull(c.failed, 0) AS failed,
       ifnull(c.skipped, 0) AS skipped, ifnull(c.invalid, 0) AS invalid, ifnull(c.unfit, 0) AS ok_but_invalid,
       (SELECT group_concat(name, ' ') FROM baseline WHERE run_uuid = u.uuid) AS baselines
FROM run AS u
JOIN host AS h ON h.id = u.host
JOIN env_set AS e ON e.id = u.env_set
JOIN build AS b ON b.id = u.build
LEFT JOIN (SELECT run, count(*) AS results, sum(status = 'ok') AS ok,
                  sum(status = 'wrong') AS wrong, sum(status = 'failed') AS failed,
                  sum(status = 'skipped') AS skipped, sum(verdict = 'invalid') AS invalid,
                  sum(status = 'ok' AND verdict = 'invalid') AS unfit
           FROM result GROUP BY run) AS c ON c.run = u.id
ORDER BY u.started_utc DESC, u.id DESC
