/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and termination ask for a clean end: the sample in flight is finished, what was measured
 * is stored. A second signal ends the program at once. */
#ifndef HARNESS_INTERRUPT_H
#define HARNESS_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
bool interrupt_requested(void);

#endif
