/* SPDX-License-Identifier: Apache-2.0
 *
 * A scaling point as lines of text, from the ridge that was one of its ranks to the one that had
 * them started. */
#ifndef HARNESS_SCALE_SCALE_TEXT_H
#define HARNESS_SCALE_SCALE_TEXT_H

#include <stdio.h>

#include "harness/scale/scale.h"

void scale_result_write(const struct scale_result *result, FILE *to);
/* The text is cut into lines; those of others in between are skipped. */
enum status scale_result_read(char *text, struct scale_result *out, struct error *err);

#endif
