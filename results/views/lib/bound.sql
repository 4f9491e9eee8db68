-- SPDX-License-Identifier: Apache-2.0
-- What limits each row of `item`, a table that the view makes: run, result, idx (NULL: the whole
-- result), device, precision, threads, cache, time_s, flops, byte_flops (those of flops that multiply
-- bytes; NULL: none), removed, bytes, working_bytes, fewer_operations (a kernel does fewer than its flops say), input_wait_share (of a training; NULL:
-- nothing was read). `removed` is how many of the flops passes took away: nothing computes them, and
-- no peak has to.
--
-- roof_s is the least time in which the arithmetic and the memory traffic can be had: the larger
-- of arithmetic / peak and bytes / bandwidth, with what this run measured on the same device with the
-- same precision and number of threads (best pattern each); the threads of the host say nothing
-- of another device, whose ceilings have threads 0. The traffic goes to DRAM, or, when
-- the working set fits the largest cache and was left in it, to that cache. Classes:
--   input            more than a tenth of the time went into waiting for samples
--   compute, DRAM    within 1/0.8 of that roof
--   cache            left of the ridge of DRAM, the working set fits the largest cache
--   overhead         none of these, below 50 us: calls and hand-overs
--   latency          none of these: dependencies, idle cores, poor use of the units
--   counting error   more than 2 % faster than the roof: a number is wrong
--   unknown          something was not measured; the note says what
WITH
roof AS NOT MATERIALIZED (
    SELECT i.*, a.value AS peak, ifnull(b.value, a.value) AS byte_peak, d.value AS dram, f.value AS fast, z.bytes AS cache_bytes,
           i.cache = 'warm' AND ifnull(i.working_bytes <= z.bytes, 0) AS fits
    FROM (SELECT *, iif(device = 'cpu', threads, 0) AS used FROM item) AS i
    LEFT JOIN (SELECT run, device, precision, threads, max(value) AS value
               FROM ceiling
               WHERE kind = 'compute' AND how = 'measured' AND value > 0
               GROUP BY run, device, precision, threads) AS a
        ON a.run = i.run AND a.device = i.device AND a.precision = i.precision
           AND a.threads = i.used
    LEFT JOIN (SELECT run, device, threads, max(value) AS value
               FROM ceiling
               WHERE kind = 'compute' AND precision = 'i8' AND how = 'measured' AND value > 0
               GROUP BY run, device, threads) AS b
        ON b.run = i.run AND b.device = i.device AND b.threads = i.used
    LEFT JOIN (SELECT run, device, threads, max(value) AS value
               FROM ceiling
               WHERE kind = 'bandwidth' AND level = 'DRAM' AND how = 'measured' AND value > 0
               GROUP BY run, device, threads) AS d
        ON d.run = i.run AND d.device = i.device AND d.threads = i.used
    LEFT JOIN (SELECT run, device, threads, value, max(level)
               FROM (SELECT run, device, threads, level, max(value) AS value
                     FROM ceiling
                     WHERE kind = 'bandwidth' AND level IN ('L1', 'L2', 'L3', 'L4')
                         AND how = 'measured' AND value > 0
                     GROUP BY run, device, threads, level)
               GROUP BY run, device, threads) AS f
        ON f.run = i.run AND f.device = i.device AND f.threads = i.used
    LEFT JOIN (WITH size AS MATERIALIZED (SELECT * FROM {lib/cache_size})
               SELECT * FROM size) AS z ON z.run = i.run AND z.device = i.device),
least AS NOT MATERIALIZED (
    SELECT *, (flops - ifnull(removed, 0) - ifnull(byte_flops, 0)) / peak +
              ifnull(byte_flops, 0) / byte_peak AS compute_s,
           iif(fits, ifnull(bytes / fast, 0.0), bytes / dram) AS memory_s
    FROM roof),
bounded AS MATERIALIZED (
    SELECT *, iif(peak IS NULL OR dram IS NULL OR time_s IS NULL, NULL,
                  max(compute_s, memory_s)) AS roof_s
    FROM least)
SELECT bounded.*, max(time_s - roof_s, 0.0) AS recoverable_s,
       CASE
           WHEN input_wait_share > 0.1 THEN 'input'
           WHEN roof_s IS NULL THEN 'unknown'
           WHEN roof_s > 1.02 * time_s AND compute_s >= memory_s AND fewer_operations
               THEN 'compute'
           WHEN roof_s > 1.02 * time_s AND compute_s < memory_s AND fits THEN 'cache'
           WHEN roof_s > 1.02 * time_s THEN 'counting error'
           WHEN roof_s >= 0.8 * time_s AND compute_s >= memory_s THEN 'compute'
           WHEN roof_s >= 0.8 * time_s THEN iif(fits, 'cache', 'DRAM')
           WHEN fits AND compute_s * dram < bytes THEN 'cache'
           WHEN time_s < 50e-6 THEN 'overhead'
           ELSE 'latency'
       END AS bound,
       CASE
           WHEN time_s IS NULL THEN 'no time'
           WHEN input_wait_share > 0.1
               THEN round(100 * input_wait_share, 1) || ' % of the time steps waited for samples'
           WHEN flops IS NULL OR bytes IS NULL THEN 'no count of operations or bytes'
           WHEN peak IS NULL THEN 'no ceiling of arithmetic for ' || precision ||
                                  iif(used, ' with ' || threads || ' threads', ' on ' || device) ||
                                  ' in this run'
           WHEN dram IS NULL THEN 'no ceiling of DRAM' ||
                                  iif(used, ' with ' || threads || ' threads', ' on ' || device) ||
                                  ' in this run'
           WHEN roof_s > 1.02 * time_s AND compute_s >= memory_s AND fewer_operations
               THEN 'Winograd or padding left out: fewer operations are done than counted'
           WHEN roof_s > 1.02 * time_s AND compute_s < memory_s AND fits
               THEN 'a smaller cache holds it'
           WHEN roof_s > 1.02 * time_s AND compute_s >= memory_s THEN 'above the peak of arithmetic'
           WHEN roof_s > 1.02 * time_s THEN 'above the bandwidth of DRAM'
           ELSE ''
       END AS note
FROM bounded
