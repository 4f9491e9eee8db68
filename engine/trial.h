/* SPDX-License-Identifier: Apache-2.0
 *
 * One step on trial: every accepting kernel is run on it, compared with the reference, timed. */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "engine/compile.h"

struct trial {
    struct exe *exe;
    struct step *step;
    void **in, **out;            /* ours, except fixed inputs */
    struct ref_tensor *expected; /* per output; count 0: not known */
    char *evict;                 /* streamed between runs when `cold` */
    bool cold;                   /* the network's weights exceed the caches */
};

enum { TRIAL_EVICT_BYTES = 48 << 20 };

/* Tries the step's candidates: sets times, reasons, and `chosen` on the winner. FAILED when none
 * is right. t has exe, step, evict and cold set; everything else is made and released here. */
enum status trial_run(struct trial *t, struct error *err);

#endif
