-- SPDX-License-Identifier: Apache-2.0
-- One row per step of the compiled graph, its metrics side by side.
-- :run, :result: only these; NULL: all.
SELECT r.run, r.id AS result, o.idx, o.name, o.kind, o.shape, o.kernel, o.provider,
       max(iif(m.name = 'time_s', m.value, NULL)) AS time_s,
       max(iif(m.name = 'flops' AND m.source = 'model', m.value, NULL)) AS flops,
       max(iif(m.name = 'byte_flops', m.value, NULL)) AS byte_flops,
       max(iif(m.name = 'flops' AND m.source <> 'model', m.value, NULL)) AS flops_counted,
       max(iif(m.name = 'dram_read_bytes', m.value, NULL)) AS dram_read_bytes,
       max(iif(m.name = 'dram_write_bytes', m.value, NULL)) AS dram_write_bytes,
       max(iif(m.name = 'bytes_streamed', m.value, NULL)) AS bytes_streamed,
       max(iif(m.name = 'bytes_compulsory', m.value, NULL)) AS bytes_compulsory
FROM result AS r
CROSS JOIN op AS o ON o.result = r.id
LEFT JOIN metric AS m ON m.result = o.result AND m.op = o.idx
WHERE (:run IS NULL OR r.run = :run) AND (:result IS NULL OR r.id = :result)
GROUP BY r.id, o.idx
