-- SPDX-License-Identifier: Apache-2.0
-- What identifies a run, its program and its machine, for comparing it with another.
-- :run
SELECT u.id AS run, u.uuid, u.started_utc, u.tag, u.verdict, u.reason, h.uid AS host_uid,
       h.label AS host, e.hash AS environment, b.uid AS build, b.version, b.git, b.config,
       b.compiler, b.flags, b.features, u.turns_uuid, u.rounds
FROM run AS u
JOIN host AS h ON h.id = u.host
JOIN env_set AS e ON e.id = u.env_set
JOIN build AS b ON b.id = u.build
WHERE u.id = :run
