-- SPDX-License-Identifier: Apache-2.0
-- Points of the roofline of a run as its report draws them: with names, and with each one's share
-- of the time of one execution of all. Steps of one point share a field of work's colour.
-- :run
WITH w AS MATERIALIZED (
    SELECT *, count(*) OVER (PARTITION BY spec) AS same,
           count(*) OVER (PARTITION BY spec, batch) AS same_batch
    FROM {lib/whole})
SELECT result, key, spec || iif(same > 1, ' b' || batch, '') ||
           iif(same_batch > 1, ' t' || threads, '') ||
           iif(precision = 'f32', '', ' ' || precision) ||
           iif(mode = 'inference', '', ' ' || mode) ||
           iif(scenario = 'single_stream', '', ' ' || scenario) || iif(cache = 'cold', ' cold', '')
           AS label,
       domain, flops / bytes_compulsory AS "intensity [FLOP/B]", flops / time_s AS
           "flop_rate [FLOP/s]", time_s / sum(time_s) OVER () AS share, verdict = 'valid' AS valid
FROM w
WHERE status = 'ok'
ORDER BY time_s DESC
