/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device of a plug-in can do at most: the roofs that plug-ins offer for it
 * (engine/run/device_roof.h), copies to and from the host and within its memory, what a launch
 * costs, and what the device says about itself. docs/gpu.md says how each is measured.
 */
#ifndef HARNESS_ROOFS_DEVICE_CEILINGS_H
#define HARNESS_ROOFS_DEVICE_CEILINGS_H

#include "harness/roofs/ceilings.h"

/* name: "cuda:1". What cannot be measured is in the list with value NAN and a reason, also when the
 * device fails half way. UNSUPPORTED with the cause when there is no such device. Records and their
 * text live in the arena. Of the options `quick` and `only` count. */
enum status device_ceilings_measure(const char *name, const struct ceiling_options *options,
                                    struct arena *arena, const struct ceiling_record **out,
                                    int *count, struct error *err);

#endif
