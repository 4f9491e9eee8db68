-- SPDX-License-Identifier: Apache-2.0
-- Version 1 of the store. A later version is another file with the next number; none is ever
-- edited after a release. Times are UTC in ISO 8601 with milliseconds; a number that could not be
-- had is NULL and the reason stands beside it.

CREATE TABLE host (
    id    INTEGER PRIMARY KEY,
    uid   TEXT NOT NULL UNIQUE, -- hash of the machine's id; the same on every run
    label TEXT NOT NULL         -- name for people; a hash when redacted
) STRICT;

-- What makes two runs comparable. Thousands of runs share one set; hash covers all facts in it.
CREATE TABLE env_set (
    id   INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE env_fact (
    env_set  INTEGER NOT NULL REFERENCES env_set ON DELETE CASCADE,
    category TEXT NOT NULL, -- identity, cpu, cpu_state, security, memory, kernel, storage ...
    key      TEXT NOT NULL,
    value    TEXT,          -- NULL unless status is ok
    unit     TEXT NOT NULL,
    source   TEXT NOT NULL, -- file or call it was read from
    class    TEXT NOT NULL CHECK (class IN ('identity', 'tuning')),
    status   TEXT NOT NULL CHECK (status IN ('ok', 'denied', 'absent')),
    PRIMARY KEY (env_set, category, key)
) STRICT, WITHOUT ROWID;

-- The program under test: this binary and its plug-ins.
CREATE TABLE build (
    id       INTEGER PRIMARY KEY,
    uid      TEXT NOT NULL UNIQUE, -- hash of the executable and its plug-ins
    version  TEXT NOT NULL,
    git      TEXT NOT NULL,        -- commit, "-dirty" when files differed
    config   TEXT NOT NULL,
    compiler TEXT NOT NULL,
    flags    TEXT NOT NULL,
    features TEXT NOT NULL
) STRICT;

CREATE TABLE run (
    id          INTEGER PRIMARY KEY,
    uuid        TEXT NOT NULL UNIQUE,
    host        INTEGER NOT NULL REFERENCES host,
    env_set     INTEGER NOT NULL REFERENCES env_set,
    build       INTEGER NOT NULL REFERENCES build,
    command     TEXT NOT NULL,
    suite       TEXT NOT NULL, -- path of the suite file, or "command line"
    suite_text  TEXT NOT NULL, -- its contents as run, includes expanded
    plan_hash   TEXT NOT NULL, -- over the ids of all points in order
    planned     INTEGER NOT NULL,
    started_utc TEXT NOT NULL,
    ended_utc   TEXT,
    order_key   INTEGER NOT NULL, -- orders a history: commit time, or start time without git
    branch      TEXT NOT NULL,
    tag         TEXT NOT NULL, -- given by --tag; names a run in compare and history
    state       TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
    verdict     TEXT NOT NULL CHECK (verdict IN ('valid', 'invalid')),
    reason      TEXT NOT NULL
) STRICT;

-- Facts that change by themselves (load, temperature, free memory), before and after the run.
CREATE TABLE run_fact (
    run      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    phase    TEXT NOT NULL CHECK (phase IN ('before', 'after')),
    category TEXT NOT NULL,
    key      TEXT NOT NULL,
    value    TEXT,
    unit     TEXT NOT NULL,
    source   TEXT NOT NULL,
    status   TEXT NOT NULL CHECK (status IN ('ok', 'denied', 'absent')),
    PRIMARY KEY (run, phase, category, key)
) STRICT, WITHOUT ROWID;

-- What is measured, on any machine at any time: the same key means the same question.
CREATE TABLE point (
    id        INTEGER PRIMARY KEY,
    key       TEXT NOT NULL UNIQUE, -- 16 hex digits, hash of canonical
    canonical TEXT NOT NULL UNIQUE,
    workload  TEXT NOT NULL, -- without parameters
    params    TEXT NOT NULL, -- "version=1.5", sorted, defaults left out
    domain    TEXT NOT NULL,
    mode      TEXT NOT NULL, -- inference, training
    device    TEXT NOT NULL,
    precision TEXT NOT NULL,
    batch     INTEGER NOT NULL,
    threads   INTEGER NOT NULL,
    scenario  TEXT NOT NULL, -- single_stream, offline, server
    cache     TEXT NOT NULL CHECK (cache IN ('warm', 'cold')),
    providers TEXT NOT NULL  -- "" means all
) STRICT;

CREATE TABLE result (
    id           INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    sequence     INTEGER NOT NULL, -- position in the plan, from 0
    point        INTEGER NOT NULL REFERENCES point,
    status       TEXT NOT NULL CHECK (status IN ('ok', 'wrong', 'failed', 'skipped')),
    verdict      TEXT NOT NULL CHECK (verdict IN ('valid', 'invalid')),
    reason       TEXT NOT NULL, -- of a status other than ok, or of invalid
    verify_error REAL,          -- max relative error against the float64 reference
    verify_bound REAL,
    verify_how   TEXT NOT NULL, -- "reference f64", "" when not verified
    stop_reason  TEXT NOT NULL, -- why sampling ended
    started_utc  TEXT NOT NULL,
    wall_s       REAL NOT NULL, -- everything: build, compile, verify, measure
    reproduce    TEXT NOT NULL, -- command line that measures this point alone
    UNIQUE (run, sequence)
) STRICT;
CREATE INDEX result_point ON result (point, run);

-- One step of the compiled graph.
CREATE TABLE op (
    result   INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
    idx      INTEGER NOT NULL,
    name     TEXT NOT NULL,
    kind     TEXT NOT NULL, -- operator
    shape    TEXT NOT NULL, -- of its first output: "[32, 56, 56, 64]"
    kernel   TEXT NOT NULL,
    provider TEXT NOT NULL,
    PRIMARY KEY (result, idx)
) STRICT, WITHOUT ROWID;

-- Any number about a result (op IS NULL) or about one of its steps.
CREATE TABLE metric (
    id        INTEGER PRIMARY KEY,
    result    INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
    op        INTEGER,       -- idx of the step
    name      TEXT NOT NULL, -- time_s, flops, dram_read_bytes ...
    unit      TEXT NOT NULL, -- s, 1, B, J, FLOP/s ...
    source    TEXT NOT NULL, -- clock, model, papi, powercap, derived ...
    better    TEXT NOT NULL CHECK (better IN ('lower', 'higher', 'none')),
    value     REAL,          -- median where there are samples
    reason    TEXT NOT NULL, -- why value is NULL, "" otherwise
    formula   TEXT NOT NULL, -- how a derived or counted value was made
    n         INTEGER NOT NULL,
    min       REAL, q1 REAL, q3 REAL, max REAL, mad REAL,
    ci_low    REAL, ci_high REAL, -- 95 % interval of the median
    CHECK (value IS NOT NULL OR reason <> '')
) STRICT;
CREATE INDEX metric_whole ON metric (result, name) WHERE op IS NULL;
CREATE INDEX metric_step ON metric (result, op, name, value) WHERE op IS NOT NULL;

-- Every raw sample with its surroundings; warm-up is kept and marked.
CREATE TABLE sample (
    result           INTEGER NOT NULL REFERENCES result ON DELETE CASCADE,
    idx              INTEGER NOT NULL,
    phase            TEXT NOT NULL CHECK (phase IN ('warmup', 'time', 'discarded')),
    time_ns          INTEGER NOT NULL,
    queue_ns         INTEGER, -- server scenario: arrival to start
    context_switches INTEGER,
    migrations       INTEGER,
    page_faults      INTEGER,
    steal_ns         INTEGER,
    clock_hz         REAL,
    PRIMARY KEY (result, idx)
) STRICT, WITHOUT ROWID;

-- Roofs, measured in the run (how = measured) or stated by a maker (how = datasheet).
CREATE TABLE ceiling (
    id                INTEGER PRIMARY KEY,
    run               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    device            TEXT NOT NULL,
    kind              TEXT NOT NULL CHECK (kind IN ('compute', 'bandwidth')),
    name              TEXT NOT NULL, -- "fma f32 avx512", "triad DRAM": unique in a run with threads
    level             TEXT NOT NULL, -- L1, L2, L3, DRAM; "" for compute
    precision         TEXT NOT NULL, -- f32, f64, bf16, i8; "" for bandwidth
    isa               TEXT NOT NULL,
    pattern           TEXT NOT NULL, -- fma, read, copy, copy_nt, triad, triad_nt
    threads           INTEGER NOT NULL,
    working_set_bytes INTEGER,
    value             REAL,          -- FLOP/s or B/s
    unit              TEXT NOT NULL,
    reason            TEXT NOT NULL, -- why value is NULL
    how               TEXT NOT NULL CHECK (how IN ('measured', 'datasheet')),
    n                 INTEGER NOT NULL,
    min REAL, max REAL,
    UNIQUE (run, device, name, threads)
) STRICT;

-- Names for runs: "release-1.2", "vendor-claim".
CREATE TABLE baseline (
    name        TEXT PRIMARY KEY,
    run_uuid    TEXT NOT NULL,
    note        TEXT NOT NULL,
    created_utc TEXT NOT NULL
) STRICT, WITHOUT ROWID;
