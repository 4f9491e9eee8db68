-- SPDX-License-Identifier: Apache-2.0
-- Names that were given to runs. A run that is not in this database has NULL columns.
SELECT b.name, b.run_uuid, b.note, b.created_utc, u.id AS run, u.started_utc, u.state, u.tag,
       h.label AS host, d.uid AS build, d.version, d.git
FROM baseline AS b
LEFT JOIN run AS u ON u.uuid = b.run_uuid
LEFT JOIN host AS h ON h.id = u.host
LEFT JOIN build AS d ON d.id = u.build
ORDER BY b.name
