-- SPDX-License-Identifier: Apache-2.0
-- Version 3: visits. A run comes to each of its points in several rounds; one visit is fresh
-- threads, warming up and samples, with what the machine itself could do measured beside it.

-- A run without a name was merged with the next one of that kind. It gets one that follows from what
-- is stored of it, so that every copy of a database gives it the same.
UPDATE run SET uuid = (SELECT printf('%08x-%04x-8%.3s-8%.3s-%.12s', strftime('%s', run.started_utc),
    CAST(substr(run.started_utc, 21, 3) AS INTEGER), h.uid || '000', substr(h.uid || '000000', 4),
    run.plan_hash || '000000000000') FROM host AS h WHERE h.id = run.host)
WHERE uuid = '';

ALTER TABLE run ADD COLUMN rounds INTEGER NOT NULL DEFAULT 1 -- planned visits of each point
    CHECK (rounds >= 1 AND uuid <> '');
ALTER TABLE run ADD COLUMN order_seed INTEGER NOT NULL DEFAULT 0; -- of each round's shuffled order
-- The run that was measured in turns with this one: sample k of a visit there was taken beside
-- sample k of that visit here.
ALTER TABLE run ADD COLUMN turns_uuid TEXT NOT NULL DEFAULT '';

ALTER TABLE sample ADD COLUMN visit INTEGER NOT NULL DEFAULT 0; -- round, from 0

CREATE TABLE visit (
    result      INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
    round       INTEGER NOT NULL, -- from 0
    started_utc TEXT NOT NULL,
    samples     INTEGER NOT NULL, -- timed ones
    median_s    REAL, ci_low_s REAL, ci_high_s REAL, -- of its samples alone
    steal_share REAL, wait_share REAL, -- of the CPU time: other virtual machines; other programs
    clock_hz    REAL,
    reason      TEXT NOT NULL, -- why something above is NULL or the visit does not count, else ""
    PRIMARY KEY (result, round)
) STRICT, WITHOUT ROWID;

-- What the machine itself could do beside a visit.
CREATE TABLE level (
    result INTEGER NOT NULL,
    round  INTEGER NOT NULL,
    name   TEXT NOT NULL, -- hand_over, cache_read, dram_read, multiply_add
    unit   TEXT NOT NULL, -- s, B/s, FLOP/s
    better TEXT NOT NULL CHECK (better IN ('lower', 'higher')),
    value  REAL, -- geometric mean of the readings before and after the visit's samples
    reason TEXT NOT NULL,
    PRIMARY KEY (result, round, name),
    FOREIGN KEY (result, round) REFERENCES visit ON DELETE CASCADE,
    CHECK (value IS NOT NULL OR reason <> '')
) STRICT, WITHOUT ROWID;

INSERT INTO visit
SELECT r.id, 0, r.started_utc,
       (SELECT count(*) FROM sample AS s WHERE s.result = r.id AND s.phase = 'time'),
       t.value, t.ci_low, t.ci_high,
       (SELECT value FROM metric WHERE result = r.id AND op IS NULL AND name = 'steal_share'), NULL,
       (SELECT value FROM metric WHERE result = r.id AND op IS NULL AND name = 'clock_hz'),
       'measured before visits were told apart: what is missing was not recorded'
FROM result AS r
LEFT JOIN metric AS t ON t.result = r.id AND t.op IS NULL AND t.name = 'time_s'
WHERE EXISTS (SELECT 1 FROM sample AS s WHERE s.result = r.id AND s.phase = 'time')
GROUP BY r.id;
