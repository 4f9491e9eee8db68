-- SPDX-License-Identifier: Apache-2.0
-- Points of the roofline of a run as its report draws them: with names, and with each one's share
-- of the time of one execution of all. Steps of one point share a field of work's colour.
-- :run
SELECT result, key, label, domain, flops / bytes_compulsory AS "intensity [FLOP/B]",
       flops / time_s AS "flop_rate [FLOP/s]", time_s / sum(time_s) OVER () AS share, verdict = 'valid' AS valid
FROM {lib/named}
WHERE status = 'ok'
ORDER BY time_s DESC
