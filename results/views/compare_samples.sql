-- SPDX-License-Identifier: Apache-2.0
-- The timed samples of a result by visit, in the order in which they were taken.
-- :result
SELECT visit, time_ns FROM sample WHERE result = :result AND phase = 'time' ORDER BY visit, idx
