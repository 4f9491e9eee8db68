-- SPDX-License-Identifier: Apache-2.0
-- The results of a run that have samples, with the names of the report.
-- :run, :result: only this one; NULL: all.
WITH w AS MATERIALIZED (
    SELECT *, count(*) OVER (PARTITION BY run, spec) AS same FROM {lib/whole})
SELECT result, spec || iif(same > 1, ' b' || batch, '') AS label, verdict = 'valid' AS valid
FROM w
WHERE status = 'ok'
ORDER BY run, sequence
