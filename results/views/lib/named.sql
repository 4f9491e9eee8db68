-- SPDX-License-Identifier: Apache-2.0
-- The results of lib/whole with a label for pictures: workload and parameters, what is unusual, and
-- of the rest what tells a result from the others of its run. What only some points have (" bound=0.1
-- quantile=0.99") stands last in the canonical text, behind the providers.
-- `apart` is what still tells those apart whose labels would otherwise be the same.
-- :run, :result: only this one; NULL: all.
SELECT *, short || apart AS label
FROM (SELECT *, iif(count(*) OVER (PARTITION BY run, short) > 1,
                    iif(device = 'cpu', '', ' ' || device) ||
                    iif(providers = '', '', ' ' || providers) ||
                    iif(instr(tail, ' '), substr(tail, instr(tail, ' ')), ''), '') AS apart
FROM (SELECT *, spec || iif(count(*) OVER (PARTITION BY run, spec) > 1, ' b' || batch, '') ||
             iif(min(threads) OVER (PARTITION BY run, spec, batch) <
                 max(threads) OVER (PARTITION BY run, spec, batch), ' t' || threads, '') ||
             iif(precision = 'f32', '', ' ' || precision) ||
             iif(mode = 'inference', '', ' ' || mode) ||
             iif(scenario = 'single_stream', '', ' ' || scenario) ||
             iif(cache = 'cold', ' cold', '') AS short,
             iif(instr(canonical, ' providers='),
                 substr(canonical, instr(canonical, ' providers=') + 1), '') AS tail
      FROM {lib/whole}))
