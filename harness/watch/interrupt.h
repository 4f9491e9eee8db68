/* SPDX-License-Identifier: Apache-2.0
 *
 * INT (Ctrl-C), TERM, HUP and QUIT ask for a clean end: the sample in flight is finished, what was
 * measured is stored. A second signal ends the program at once. Being stopped and continued is
 * counted. */
#ifndef HARNESS_WATCH_INTERRUPT_H
#define HARNESS_WATCH_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
/* All is stored: from here on the first signal ends the program. */
void interrupt_restore(void);
bool interrupt_requested(void);
/* How often this process was continued, mostly after a stop (SIGSTOP, Ctrl-Z). */
int interrupt_continued(void);

#endif
