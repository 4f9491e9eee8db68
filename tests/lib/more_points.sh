#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gives the latest run of a database by tests/lib/sample_db.sh N copies of its first four points, each
# somewhat slower than the one before, with parameters that tell them apart.
#
#     tests/lib/more_points.sh FILE N
set -eu
sqlite3 "$1" "
    CREATE TEMP TABLE copy AS SELECT value AS k FROM generate_series(1, $2);
    CREATE TEMP TABLE old AS SELECT id FROM result WHERE run = 3 AND point <= 4;
    INSERT INTO point SELECT id + 1000 * k, key || k, canonical || ' k=' || k, workload, 'case=' || k, domain, mode,
        device, precision, batch, threads, scenario, cache, providers FROM point, copy WHERE id <= 4;
    INSERT INTO result SELECT id + 10000 * k, run, sequence + 1000 * k, point + 1000 * k, status, verdict, reason,
        verify_error, verify_bound, verify_how, stop_reason, started_utc, wall_s, reproduce
        FROM result, copy WHERE id IN (SELECT id FROM old);
    INSERT INTO op SELECT result + 10000 * k, idx, name, kind, shape, kernel, provider FROM op, copy
        WHERE result IN (SELECT id FROM old);
    INSERT INTO metric (result, op, name, unit, source, better, value, reason, formula, n)
        SELECT result + 10000 * k, op, name, unit, source, better,
            iif(name IN ('time_s', 'flops'), value * (1 + k / 20.0), value), reason, formula, n FROM metric, copy
        WHERE result IN (SELECT id FROM old)"
