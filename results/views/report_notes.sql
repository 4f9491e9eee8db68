-- SPDX-License-Identifier: Apache-2.0
-- Notes of the results of a run: what a reader must know of a number although it is valid. The page
-- shows them with their result whatever they say. A new kind of note is a metric whose formula begins
-- with "note: " (RECORD_NOTE in results/record.h), or one more SELECT here. Steps on the reference
-- kernel are counted here only for results that were stored before they noted it themselves.
-- :run
SELECT r.id AS result, r.sequence, 'visit' AS kind,
       'Round ' || (v.round + 1) || ' is ' || v.reason AS note
FROM result AS r
JOIN visit AS v ON v.result = r.id
WHERE r.run = :run AND v.reason GLOB 'set apart: *'
    AND (SELECT count(*) FROM visit AS o WHERE o.result = r.id) > 1
UNION ALL
SELECT r.id, r.sequence, 'reference', count(*) || iif(count(*) = 1, ' step', ' steps') || ' of ' ||
       (SELECT count(*) FROM op WHERE op.result = r.id) || ' ran on the reference kernel, which is ' ||
       'made to be right and not to be fast' ||
       ifnull(printf(': %.3g %% of the time of all steps', 100 * sum(m.value) /
           (SELECT sum(value) FROM metric WHERE result = r.id AND op IS NOT NULL
                AND name = 'time_s')), '')
FROM result AS r
JOIN op AS o ON o.result = r.id AND o.provider = 'reference'
LEFT JOIN metric AS m ON m.result = r.id AND m.op = o.idx AND m.name = 'time_s'
WHERE r.run = :run
    AND NOT EXISTS (SELECT 1 FROM metric WHERE result = r.id AND op IS NULL
                        AND name = 'reference_steps')
GROUP BY r.id
UNION ALL
SELECT r.id, r.sequence, m.name, substr(m.formula, 7)
FROM result AS r
JOIN metric AS m ON m.result = r.id AND m.op IS NULL AND m.formula GLOB 'note: *'
WHERE r.run = :run
ORDER BY 2, 3, 4
