/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/compare: runs that are in a database: naming and listing them, keeping their programs,
 * and comparing two of them: what differs around them, a verdict per point, and the printed forms.
 *
 * A comparison as the report shows it: plots/ sits below the comparison and is handed the numbers.
 */
#ifndef HARNESS_COMPARE_AGAINST_H
#define HARNESS_COMPARE_AGAINST_H

#include "harness/compare/comparison.h"
#include "plots/report.h"

/* Everything lives in the comparison, which must outlive the report. */
enum status against_make(struct comparison_set *set, struct report_against *against,
                         struct error *err);

#endif
