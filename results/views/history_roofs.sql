-- SPDX-License-Identifier: Apache-2.0
-- How near a point came to its roof in each run that measured it.
-- :point: its key
SELECT result, fraction_of_roof, bound
FROM {lib/history_roof}
ORDER BY result
