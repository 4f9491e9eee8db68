-- SPDX-License-Identifier: Apache-2.0
-- The visits of each result of a run that was visited more than once, in the order of the rounds. A
-- visit that is set apart does not count; another reason says why something of it is not known.
-- :run
SELECT v.result, v.round, v.started_utc, v.samples, v.median_s AS "median [s]",
       v.ci_low_s AS "ci_low [s]", v.ci_high_s AS "ci_high [s]", v.steal_share, v.wait_share,
       v.clock_hz AS "clock [Hz]", v.reason,
       v.reason GLOB 'set apart: *' AS apart, v.median_s / m.value - 1 AS deviation
FROM result AS r
JOIN visit AS v ON v.result = r.id
JOIN metric AS m ON m.result = r.id AND m.op IS NULL AND m.name = 'time_s'
WHERE r.run = :run AND m.value > 0 AND v.median_s > 0
    AND (SELECT count(*) FROM visit AS o WHERE o.result = r.id AND o.median_s > 0) > 1
ORDER BY r.sequence, v.round
