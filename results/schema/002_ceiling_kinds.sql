-- SPDX-License-Identifier: Apache-2.0
-- Version 2: ceilings of devices. A latency is the least that can be had, in seconds; a capacity is
-- the size of a memory or cache, in bytes. threads is 0 where a device is used whole.

CREATE TABLE ceiling_2 (
    id                INTEGER PRIMARY KEY,
    run               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    device            TEXT NOT NULL,
    kind              TEXT NOT NULL
                      CHECK (kind IN ('compute', 'bandwidth', 'latency', 'capacity')),
    name              TEXT NOT NULL, -- "fma f32 avx512", "triad DRAM": unique in a run with threads
    level             TEXT NOT NULL, -- L1, L2, L3, DRAM; link to the host; "" for the others
    precision         TEXT NOT NULL, -- f32, f64, tf32, bf16, f16, i8, f8; "" for the others
    isa               TEXT NOT NULL,
    pattern           TEXT NOT NULL, -- fma, mma, wgmma, gemm, read, write, copy, copy_nt, triad ...
    threads           INTEGER NOT NULL,
    working_set_bytes INTEGER,
    value             REAL,          -- FLOP/s, OP/s, B/s, s or B
    unit              TEXT NOT NULL,
    reason            TEXT NOT NULL, -- why value is NULL
    how               TEXT NOT NULL CHECK (how IN ('measured', 'datasheet')),
    n                 INTEGER NOT NULL,
    min REAL, max REAL,
    UNIQUE (run, device, name, threads)
) STRICT;
INSERT INTO ceiling_2 SELECT * FROM ceiling;
DROP TABLE ceiling;
ALTER TABLE ceiling_2 RENAME TO ceiling;
