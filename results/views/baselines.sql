-- SPDX-License-Identifier: Apache-2.0
-- Names that were given to runs. A run that is not in this database has NULL columns.
SELECT b.name, b.run_uuid, b.note, b.created_utc, u.id AS run, u.started_utc, u.state, u.tag,
       h.label AS host
FROM baseline AS b
LEFT JOIN run AS u ON u.uuid = b.run_uuid
LEFT JOIN host AS h ON h.id = u.host
ORDER BY b.name
