/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled network against the float64 reference, on the same weights and inputs. */
#ifndef HARNESS_VERIFY_H
#define HARNESS_VERIFY_H

#include "engine/exe.h"

struct verification {
    double error; /* max |y - r| / max |r|, the worst output */
    double bound; /* the largest that a kernel in use states for itself; 1e-5 at least, or 0 when
                     the graph has no floats */
};

/* Runs the executable twice: nothing may depend on fresh memory. */
enum status verify_exe(const struct graph *graph, struct exe *exe, struct verification *out,
                       struct error *err);

#endif
