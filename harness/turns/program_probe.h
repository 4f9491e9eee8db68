/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies another program, perhaps an older one, by what it says about itself. */
#ifndef HARNESS_TURNS_PROGRAM_PROBE_H
#define HARNESS_TURNS_PROGRAM_PROBE_H

#include "base/arena.h"
#include "base/error.h"
#include "results/record.h"

/* Asks `PROGRAM version --json`. One that does not know its uid yet gets the hash of its file and
 * of the plug-ins beside it. Text lives in the arena. */
enum status program_probe(const char *program, const char *const *environment, struct arena *arena,
                          struct build_record *build, struct error *err);

#endif
