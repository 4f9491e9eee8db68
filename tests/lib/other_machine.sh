#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes of a database of tests/lib/sample_db.sh that of another machine a month later, in place: its
# ceilings are 2.5 times as high, its times 0.55 times as long; one point is gone, one does 10 % more.
sqlite3 "$1" "
    UPDATE host SET label = 'bench-99', uid = 'other';
    UPDATE run SET uuid = '6' || substr(uuid, 2), started_utc = replace(started_utc, '2026-09', '2026-10');
    UPDATE metric SET value = value * 0.55, ci_low = ci_low * 0.55, ci_high = ci_high * 0.55
        WHERE name = 'time_s';
    UPDATE metric SET value = value / 0.55 WHERE name IN ('flop_rate', 'throughput');
    UPDATE sample SET time_ns = CAST(time_ns * 0.55 AS INT);
    UPDATE visit SET median_s = median_s * 0.55, ci_low_s = ci_low_s * 0.55, ci_high_s = ci_high_s * 0.55;
    UPDATE ceiling SET value = value * 2.5 WHERE how = 'measured';
    UPDATE metric SET value = value * 1.1 WHERE name = 'flops' AND op IS NULL AND result = 3002;
    DELETE FROM result WHERE id = 3004"
