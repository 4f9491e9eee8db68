/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/watch/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "base/registry.h"

static volatile sig_atomic_t requested, continued;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* A second signal, of whatever kind, meets the default action. */
static void on_signal(int number)
{
    if (requested) {
        signal(number, SIG_DFL);
        raise(number); /* taken once this handler returns */
    }
    requested = 1;
}

static void on_continue(int number)
{
    (void)number;
    continued++;
}

static void set_action(void (*handler)(int))
{
    for (int k = 0; k < ARRAY_COUNT(signals); k++) {
        struct sigaction old, action = {.sa_handler = handler};
        sigemptyset(&action.sa_mask);
        sigaction(signals[k], NULL, &old);
        if (signals[k] != SIGHUP || old.sa_handler != SIG_IGN) /* nohup */
            sigaction(signals[k], &action, NULL);
    }
}

void interrupt_install(void)
{
    struct sigaction count = {.sa_handler = on_continue, .sa_flags = (int)SA_RESTART};
    sigemptyset(&count.sa_mask);
    sigaction(SIGCONT, &count, NULL);
    set_action(on_signal);
}

void interrupt_restore(void)
{
    set_action(SIG_DFL);
}

bool interrupt_requested(void)
{
    return requested != 0;
}

int interrupt_continued(void)
{
    return continued;
}
