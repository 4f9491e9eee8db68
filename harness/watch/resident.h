/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory of this process is resident, as the kernel counts it. */
#ifndef HARNESS_WATCH_RESIDENT_H
#define HARNESS_WATCH_RESIDENT_H

#include <stdbool.h>

/* Gives back what is not in use, the pages of programs and libraries among it: those still needed
 * come back at their next use. From here on the kernel remembers the largest resident size. False:
 * it does not, and resident_peak is that of the whole process so far. */
bool resident_reset(void);
double resident_peak(void); /* bytes; NAN: unknown */
double resident_now(void);

#endif
