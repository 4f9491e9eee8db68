/* SPDX-License-Identifier: Apache-2.0
 *
 * Which process measures a run: two that went on with one run would each store visits that the
 * other has not seen. The claim is a name in the kernel, of an abstract Unix socket that nobody
 * connects to. It needs no file and is gone with its process, however that ends. */
#ifndef HARNESS_CAMPAIGN_CLAIM_H
#define HARNESS_CAMPAIGN_CLAIM_H

#include <stdbool.h>

/* False when another process of this machine has it. *claim: -1 where there are no such names. */
bool claim_run(const char *uuid, int *claim);
void claim_release(int claim);

#endif
