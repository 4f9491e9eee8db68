/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and termination ask for a clean end: the sample in flight is finished, what was measured
 * is stored. A second signal ends the program at once. Being stopped and continued is counted. */
#ifndef HARNESS_INTERRUPT_H
#define HARNESS_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
bool interrupt_requested(void);
/* How often this process was continued, mostly after a stop (SIGSTOP, Ctrl-Z). */
int interrupt_continued(void);

#endif
