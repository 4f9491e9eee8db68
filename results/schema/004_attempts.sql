-- SPDX-License-Identifier: Apache-2.0
-- Version 4: which point of a run is being measured. The row is there before the point begins and
-- goes with the transaction that stores its result; one that is still there when a run goes on
-- belongs to a point under which the process ended.

CREATE TABLE attempt (
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    sequence    INTEGER NOT NULL, -- position in the plan, from 0
    count       INTEGER NOT NULL CHECK (count > 0), -- how often it was begun without a result
    started_utc TEXT NOT NULL,    -- the last time
    PRIMARY KEY (run, sequence)
) STRICT, WITHOUT ROWID;
