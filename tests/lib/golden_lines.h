/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of numbers that another program computed: "WHOSE WHAT 1.5 2 ...", in a file of
 * tests/golden/. */
#ifndef TESTS_LIB_GOLDEN_LINES_H
#define TESTS_LIB_GOLDEN_LINES_H

#include "base/system/file.h"

/* The numbers of a line, of which there are at most max; *count: how many. FAILED when the file has
 * no such line. */
enum status golden_line(const struct file *golden, const char *whose, const char *what,
                        double *numbers, int max, int *count, struct error *err);

#endif
