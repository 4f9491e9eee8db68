#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a database such as a run leaves behind, without measuring anything: four workloads with
# steps, ceilings and samples, one failed, one skipped and one invalid point, one step above its roof. The
# numbers follow from the ceilings by a fixed rule, so that every call writes the same file.
#
#     tests/lib/sample_db.sh FILE
#
# SAMPLES=60     timed samples of each point      RUNS=3       runs, the last one is the latest
# WORKLOADS=4    4..17 measured workloads         HOSTILE=1    names and reasons full of markup
# CEILINGS=0     leaves out the ceilings          STEPS=0      leaves out the steps
set -eu
file=$1
rm -f "$file"
{
    cat results/schema/*.sql
    cat <<EOF
PRAGMA user_version = $(find results/schema -name '*.sql' | wc -l);
PRAGMA application_id = 1380533319; -- "RIDG", as in results/sqlite.h
BEGIN;
CREATE TEMP TABLE knob AS SELECT ${SAMPLES:-60} AS samples, ${RUNS:-3} AS runs,
    ${WORKLOADS:-4} AS workloads, ${HOSTILE:-0} AS hostile, ${CEILINGS:-1} AS ceilings,
    ${STEPS:-1} AS steps;
EOF
    cat <<'EOF'
-- A number in [0, 1) that depends on nothing but its arguments.
CREATE TEMP TABLE evil AS SELECT CASE WHEN hostile
    THEN '<script>alert("x")</script>''&amp;`touch pwned`<b onmouseover=alert(1)>]]><!--' ELSE '' END AS text FROM knob;

INSERT INTO host VALUES (1, 'a1b2c3d4e5f60718', 'bench-07' || (SELECT text FROM evil));
INSERT INTO env_set VALUES (1, '77aa10cc93e0d4b2');
INSERT INTO env_fact VALUES
 (1,'cpu','model_name','Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz','','/proc/cpuinfo','identity','ok'),
 (1,'topology','cores','2','','hwloc','identity','ok'),
 (1,'topology','cpus','2','','hwloc','identity','ok'),
 (1,'topology','packages','1','','hwloc','identity','ok'),
 (1,'cpu','features','avx2 avx512f avx512bw avx512vl avx512_vnni','','/proc/cpuinfo','identity','ok'),
 (1,'topology','l1d','49152','B','hwloc','identity','ok'),
 (1,'topology','l2','1310720','B','hwloc','identity','ok'),
 (1,'topology','l3','50331648','B','hwloc','identity','ok'),
 (1,'cpu_state','governor',NULL,'','/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor','tuning','absent'),
 (1,'cpu_state','no_turbo',NULL,'','/sys/devices/system/cpu/intel_pstate/no_turbo','tuning','absent'),
 (1,'cpu_state','smt','off','','/sys/devices/system/cpu/smt/control','tuning','ok'),
 (1,'mitigation','spectre_v2','spectre_v2: Enhanced IBRS','','/sys/devices/system/cpu/vulnerabilities','tuning','ok'),
 (1,'memory','size','16','GiB','/proc/meminfo','identity','ok'),
 (1,'memory','thp','madvise','','/sys/kernel/mm/transparent_hugepage/enabled','tuning','ok'),
 (1,'memory','dimms',NULL,'','/sys/firmware/dmi/tables/DMI','identity','denied'),
 (1,'kernel','release','6.1.0-18-cloud-amd64','','uname','identity','ok'),
 (1,'permission','perf_event_paranoid','3','','/proc/sys/kernel/perf_event_paranoid','tuning','ok'),
 (1,'library','onednn','3.1.1','','dnnl_version','identity','ok'),
 (1,'library','glibc','2.36','','gnu_get_libc_version','identity','ok'),
 (1,'container','hypervisor','kvm','','cpuid','identity','ok');
INSERT INTO build VALUES (1,'0011223344556677','0.1.0','3274a4953ee1','release','gcc 12.2.0','-std=c11 -O2','onednn openblas');

-- Name, domain, batch, seconds, FLOPs per execution, bytes per weight pattern, kinds of steps.
CREATE TEMP TABLE model (n INTEGER PRIMARY KEY, name TEXT, domain TEXT, batch INT, steps INT, gflop REAL, family TEXT);
INSERT INTO model VALUES
 (1,'resnet50','vision',1,73,8.2,'conv'), (2,'bert_large','language',1,172,38.6,'bert'),
 (3,'wide_deep','recommendation',512,14,1.1,'rec'), (4,'ncf','recommendation',1024,11,0.3,'rec'),
 (5,'alexnet','vision',8,13,5.7,'conv'), (6,'vgg16','vision',2,21,62,'conv'),
 (7,'googlenet','vision',4,66,12.7,'conv'), (8,'inception_v3','vision',2,104,22.9,'conv'),
 (9,'densenet121','vision',4,120,23.1,'conv'), (10,'mobilenet','vision',8,53,4.6,'conv'),
 (11,'ssd','vision',1,90,60,'conv'), (12,'mask_rcnn','vision',1,160,260,'conv'),
 (13,'deep_speech2','language',1,24,19,'bert'), (14,'nmt','language',4,60,15,'bert'),
 (15,'transformer','language',2,140,29,'bert'), (16,'dlrm','recommendation',256,30,0.9,'rec'),
 (17,'deepfm','recommendation',512,18,0.4,'rec');
DELETE FROM model WHERE n > (SELECT workloads FROM knob);

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, knob WHERE n < runs)
INSERT INTO run SELECT n, printf('%08x-1111-4222-8333-444455556666', 0x5f3a0000 + n), 1, 1, 1,
    'ridge run', 'suites/quick.toml', 'threads = 2' || char(10), 'abcdef0123456789', 7,
    strftime('%Y-%m-%dT%H:%M:%S.000Z', 1789000000 + n * 86400, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%S.000Z', 1789000150 + n * 86400, 'unixepoch'),
    1789000000 + n * 86400, 'main' || (SELECT text FROM evil), '', 'finished', 'valid', '', 1, 0, '' FROM r;
INSERT INTO run_fact SELECT id, 'before', 'load', 'loadavg_1m', '0.31', '', '/proc/loadavg', 'ok' FROM run;

INSERT INTO point SELECT n, printf('%016x', n * 7919), printf('workload=%s batch=%d', name, batch), name, '',
    domain, 'inference', 'cpu', 'f32', batch, 2, 'single_stream', 'warm', '' FROM model;
INSERT INTO point SELECT 100 + column1, printf('%016x', 1000 + column1), 'workload=' || column2 || column3,
    column2, column3, column4, 'inference', 'cpu', 'f32', column5, 2, 'single_stream', 'warm', ''
  FROM (VALUES (1,'resnet50','version=1.5','vision',32), (2,'gnmt','','language',8), (3,'ssd_large','','vision',64));
UPDATE point SET workload = workload || (SELECT text FROM evil) WHERE id IN (3, 102);

INSERT INTO result SELECT run.id * 1000 + point.id, run.id, point.id, point.id,
    CASE point.id WHEN 102 THEN 'failed' WHEN 103 THEN 'skipped' ELSE 'ok' END,
    CASE point.id WHEN 101 THEN 'invalid' ELSE 'valid' END,
    CASE point.id WHEN 101 THEN 'disturbed: 41 % of the samples lost the CPU to another process'
      WHEN 102 THEN 'gnmt: out of memory while packing weights (3.1 GB)' || (SELECT text FROM evil)
      WHEN 103 THEN 'needs 14 GB, 9 GB are free' ELSE '' END,
    CASE WHEN point.id < 102 THEN 3.1e-6 * (1 + point.id % 3) END, 1e-3,
    CASE WHEN point.id < 102 THEN 'reference f64' ELSE '' END,
    CASE WHEN point.id < 102 THEN 'interval 0.8 % of the median after ' || samples || ' samples' ELSE '' END,
    run.started_utc, 12.5, printf('ridge run %s --batch %d --threads 2', point.workload, point.batch)
  FROM run, point, knob;

INSERT INTO ceiling (run, device, kind, name, level, precision, isa, pattern, threads,
    working_set_bytes, value, unit, reason, how, n, min, max)
  SELECT run.id, 'cpu', column1, column2, column3, column4, column5, column6, t.n, column7,
    column8 * CASE WHEN column3 IN ('L3','DRAM') THEN 0.4 + 0.3 * t.n ELSE t.n * 0.5 END,
    CASE column1 WHEN 'compute' THEN 'FLOP/s' ELSE 'B/s' END, '', column9, 7,
    column8 * t.n * 0.49, column8 * t.n * 0.502
  FROM run, knob, (SELECT 1 AS n UNION SELECT 2) AS t, (VALUES
   ('compute','fma f32 avx512','','f32','avx512','fma',NULL,152e9,'measured'),
   ('compute','fma f32 avx2','','f32','avx2','fma',NULL,101e9,'measured'),
   ('compute','fma f64 avx512','','f64','avx512','fma',NULL,76e9,'measured'),
   ('compute','datasheet f32','','f32','avx512','fma',NULL,204e9,'datasheet'),
   ('bandwidth','read L1','L1','','avx512','read',24576,610e9,'measured'),
   ('bandwidth','triad L1','L1','','avx512','triad',24576,420e9,'measured'),
   ('bandwidth','read L2','L2','','avx512','read',655360,210e9,'measured'),
   ('bandwidth','triad L2','L2','','avx512','triad',655360,150e9,'measured'),
   ('bandwidth','read L3','L3','','avx512','read',12582912,62e9,'measured'),
   ('bandwidth','triad L3','L3','','avx512','triad',12582912,41e9,'measured'),
   ('bandwidth','read DRAM','DRAM','','avx512','read',268435456,24.1e9,'measured'),
   ('bandwidth','triad DRAM','DRAM','','avx512','triad',268435456,19.8e9,'measured'),
   ('bandwidth','triad_nt DRAM','DRAM','','avx512','triad_nt',268435456,22.9e9,'measured'),
   ('bandwidth','datasheet DRAM','DRAM','','','read',NULL,41e9,'datasheet'))
  WHERE knob.ceilings;

-- Steps: kind by family, then a share of the FLOPs and an intensity of its own.
CREATE TEMP TABLE pattern (family TEXT, slot INT, kind TEXT, weight REAL, ai REAL, eff REAL, kernel TEXT);
INSERT INTO pattern VALUES
 ('conv',0,'Conv',30,60,0.82,'conv_igemm_avx512'), ('conv',1,'Conv',24,35,0.71,'conv_onednn'),
 ('conv',2,'Conv',18,90,1.32,'conv_winograd_avx512'), ('conv',3,'Elementwise',0.01,0.12,0.7,'elementwise_tiles_avx512'),
 ('conv',4,'Conv',9,18,0.24,'conv_igemm_avx512'), ('conv',5,'MaxPool',0.02,0.6,0.4,'pool_nhwc_avx512'),
 ('bert',0,'MatMul',30,85,0.84,'matmul_packed_avx512'), ('bert',1,'MatMul',28,80,0.8,'matmul_onednn'),
 ('bert',2,'Attention',12,22,0.46,'attention_flash_avx512'), ('bert',3,'LayerNormalization',0.04,0.6,0.6,'layernorm_rows_avx512'),
 ('bert',4,'Elementwise',0.06,0.5,0.66,'elementwise_tiles_avx512'), ('bert',5,'Transpose',0,0,0.5,'copy_strided_avx512'),
 ('rec',0,'EmbeddingBag',0.05,0.25,0.35,'embedding_bag_avx512'), ('rec',1,'Gemm',30,28,0.72,'matmul_packed_avx512'),
 ('rec',2,'Concat',0,0,0.8,'concat_copy_avx512'), ('rec',3,'Gemm',12,14,0.55,'matmul_openblas'),
 ('rec',4,'Elementwise',0.02,0.12,0.6,'elementwise_tiles_avx512'), ('rec',5,'Gather',0,0,0.3,'gather_rows_avx512');
CREATE TEMP TABLE step AS
  WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < 200),
  raw AS (SELECT model.n AS model, i.n AS idx, kind, kernel, ai, eff * (0.7 + 0.1 * ((i.n * 7) % 4)) AS eff,
      weight * (1 + (i.n * 13 % 7)) AS weight, gflop
    FROM model JOIN i ON i.n < model.steps JOIN pattern ON pattern.family = model.family AND slot = i.n % 6),
  sized AS (SELECT *, 1e9 * gflop * weight / SUM(weight) OVER (PARTITION BY model) AS flops FROM raw),
  moved AS (SELECT *, CASE WHEN ai > 0 THEN flops / (ai * (0.5 + 0.25 * (idx % 5))) ELSE 2e6 + 1e5 * idx END AS bytes FROM sized)
  SELECT *, MAX(flops / 152e9, bytes / 24.1e9) / eff + 4e-6 AS time_s FROM moved;
CREATE TEMP TABLE place AS SELECT result.id AS result, CASE point WHEN 101 THEN 1 ELSE point END AS model,
    (CASE point WHEN 101 THEN 30.0 ELSE 1.0 END) * (1 + 0.004 * ((run * 5) % 7)) AS scale, run
  FROM result WHERE status = 'ok';
INSERT INTO op SELECT result, idx, printf('/stage%d/%d/%s%s', idx / 12, idx % 12, lower(kind),
    CASE WHEN idx = 1 THEN (SELECT text FROM evil) ELSE '' END), kind,
    printf('[%d, %d, %d]', 1 + idx % 3, 56 >> (idx / 20), 64 << (idx / 30)), kernel,
    CASE WHEN kernel LIKE '%onednn' THEN 'onednn' WHEN kernel LIKE '%openblas' THEN 'openblas' ELSE 'native' END
  FROM place JOIN step USING (model), knob WHERE knob.steps;
INSERT INTO metric (result, op, name, unit, source, better, value, reason, formula, n)
  SELECT result, idx, 'time_s', 's', 'clock', 'lower', time_s * scale, '', '', 5 FROM place JOIN step USING (model), knob WHERE steps
  UNION ALL SELECT result, idx, 'flops', '1', 'model', 'none', flops * round(scale), '', '', 0 FROM place JOIN step USING (model), knob WHERE steps
  UNION ALL SELECT result, idx, 'bytes_streamed', 'B', 'model', 'lower', bytes * round(scale), '', '', 0 FROM place JOIN step USING (model), knob WHERE steps
  UNION ALL SELECT result, idx, 'bytes_compulsory', 'B', 'model', 'lower', bytes * 0.8 * round(scale), '', '', 0 FROM place JOIN step USING (model), knob WHERE steps;

CREATE TEMP TABLE whole AS SELECT result, scale, point.batch, SUM(time_s) * scale AS t, SUM(flops) * round(scale) AS f, SUM(bytes) * round(scale) AS b
  FROM place JOIN step USING (model) JOIN result ON result.id = place.result JOIN point ON point.id = result.point GROUP BY result;
INSERT INTO metric (result, name, unit, source, better, value, reason, formula, n, min, q1, q3, max, mad, ci_low, ci_high)
  SELECT result, 'time_s', 's', 'clock', 'lower', t, '', '', samples, t * 0.985, t * 0.993, t * 1.012, t * 1.31, t * 0.008, t * 0.996, t * 1.004 FROM whole, knob;
INSERT INTO metric (result, name, unit, source, better, value, reason, formula, n)
  SELECT result, 'latency_p90_s', 's', 'clock', 'lower', t * 1.03, '', '', samples FROM whole, knob
  UNION ALL SELECT result, 'latency_p99_s', 's', 'clock', 'lower', CASE WHEN samples >= 100 THEN t * 1.12 END, CASE WHEN samples < 100 THEN samples || ' samples, needs 100' ELSE '' END, '', samples FROM whole, knob
  UNION ALL SELECT result, 'latency_p999_s', 's', 'clock', 'lower', CASE WHEN samples >= 1000 THEN t * 1.25 END, CASE WHEN samples < 1000 THEN samples || ' samples, needs 1000' ELSE '' END, '', samples FROM whole, knob
  UNION ALL SELECT result, 'throughput', '1/s', 'clock', 'higher', batch / t, '', 'batch / median time', 0 FROM whole
  UNION ALL SELECT result, 'flops', '1', 'model', 'none', f, '', '', 0 FROM whole
  UNION ALL SELECT result, 'flops_by_passes', '1', 'model', 'none', -2.5e6, '', 'fold_batch_norm -2500000', 0 FROM whole
  UNION ALL SELECT result, 'macs', '1', 'model', 'none', f / 2, '', '', 0 FROM whole
  UNION ALL SELECT result, 'transcendentals', '1', 'model', 'none', f / 9000, '', '', 0 FROM whole
  UNION ALL SELECT result, 'bytes_compulsory', 'B', 'model', 'lower', b * 0.55, '', '', 0 FROM whole
  UNION ALL SELECT result, 'bytes_streamed', 'B', 'model', 'lower', b, '', '', 0 FROM whole
  UNION ALL SELECT result, 'flops', '1', 'papi', 'none', NULL, 'no hardware counters: perf_event_paranoid is 3; sysctl kernel.perf_event_paranoid=1', '', 0 FROM whole
  UNION ALL SELECT result, 'dram_read_bytes', 'B', 'papi', 'lower', NULL, 'no uncore counters in a virtual machine', '', 0 FROM whole
  UNION ALL SELECT result, 'dram_write_bytes', 'B', 'papi', 'lower', NULL, 'no uncore counters in a virtual machine', '', 0 FROM whole
  UNION ALL SELECT result, 'energy_j', 'J', 'powercap', 'lower', NULL, '/sys/class/powercap is absent', '', 0 FROM whole
  UNION ALL SELECT result, 'flop_rate', 'FLOP/s', 'derived', 'higher', f / t, '', 'flops[model] / time_s', 0 FROM whole
  UNION ALL SELECT result, 'fraction_of_peak', '1', 'derived', 'higher', CASE WHEN ceilings THEN f / t / 152e9 END, CASE WHEN ceilings THEN '' ELSE 'no ceilings were measured' END, 'flop_rate / fma f32 avx512', 0 FROM whole, knob
  UNION ALL SELECT result, 'arena_bytes', 'B', 'model', 'lower', b * 0.02, '', '', 0 FROM whole
  UNION ALL SELECT result, 'weight_bytes', 'B', 'model', 'lower', b * 0.2, '', '', 0 FROM whole
  UNION ALL SELECT result, 'peak_rss_bytes', 'B', 'kernel', 'lower', b * 0.3 + 4e7, '', '', 0 FROM whole;

-- Samples: near the median, now and then a late one.
CREATE TEMP TABLE serial (n INTEGER PRIMARY KEY);
WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i, knob WHERE n < samples + 2) INSERT INTO serial SELECT n FROM i;
-- Three visits, one after the other.
INSERT INTO sample (result, idx, visit, phase, time_ns, queue_ns, context_switches, migrations,
    page_faults, steal_ns, clock_hz) SELECT result, n, min(2, max(0, n - 3) * 3 / (SELECT samples FROM knob)), CASE WHEN n < 3 THEN 'warmup' ELSE 'time' END,
    CAST(1e9 * t * (0.985 + 0.03 * ((n * 2654435761 >> 7) % 1009) / 1009.0
      + CASE WHEN (n * 40503) % 29 = 3 THEN 0.02 + 0.2 * ((n * 31) % 17) / 17.0 ELSE 0 END) AS INT),
    NULL, (n % 29 = 3), 0, 0, NULL, 3.1e9 FROM whole, serial;
COMMIT;
EOF
} | sqlite3 "$file"
