/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t requested, continued;

static void on_signal(int signal)
{
    (void)signal;
    requested = 1;
}

static void on_continue(int signal)
{
    (void)signal;
    continued++;
}

void interrupt_install(void)
{
    struct sigaction count = {.sa_handler = on_continue, .sa_flags = (int)SA_RESTART};
    sigemptyset(&count.sa_mask);
    sigaction(SIGCONT, &count, NULL);
    /* Only once: the next signal finds the default action. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_requested(void)
{
    return requested != 0;
}

int interrupt_continued(void)
{
    return continued;
}
