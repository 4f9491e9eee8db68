-- SPDX-License-Identifier: Apache-2.0
-- What is to be said beside a result, in sentences.
-- :result
SELECT substr(formula, 7) AS note, name
FROM metric
WHERE result = :result AND formula GLOB 'note: *'
ORDER BY id
