-- SPDX-License-Identifier: Apache-2.0
-- Version 5: at which clock a device was when a ceiling of it was measured.

ALTER TABLE ceiling ADD COLUMN clock_hz REAL; -- of its processors; NULL: not known
