-- SPDX-License-Identifier: Apache-2.0
-- What the machine itself could do in a run, by measurement.
-- :run
SELECT device, name, kind, threads, value, unit
FROM ceiling
WHERE run = :run AND kind IN ('compute', 'bandwidth') AND how = 'measured' AND value > 0
ORDER BY device, name, threads
