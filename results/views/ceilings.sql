-- SPDX-License-Identifier: Apache-2.0
-- Roofs that were measured in a run or stated by a maker, the best of a kind first.
-- :run: only this run; NULL: all.
SELECT run, device, kind, name, level, precision, isa, pattern, threads,
       working_set_bytes AS "working_set [B]", value, unit, min, max, n, clock_hz AS "clock [Hz]", how, reason
FROM ceiling
WHERE :run IS NULL OR run = :run
ORDER BY run, device, kind DESC, threads DESC, precision, level, value DESC
