-- SPDX-License-Identifier: Apache-2.0
-- How many programs wanted a CPU before and after a run: the kernel's averages of 1, 5 and 15
-- minutes.
-- :run
SELECT phase, value FROM run_fact
WHERE run = :run AND category = 'kernel' AND key = 'load' AND status = 'ok'
ORDER BY phase DESC
