/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether all ranks are about to do the same. */
#ifndef COLLECTIVE_AGREE_H
#define COLLECTIVE_AGREE_H

#include "engine/run/comm.h"

/* All ranks call it, each with a text of lines. FAILED on every rank, where one has another text
 * than rank 0: with the first line in which they differ on that rank. `what` names the texts. */
enum status ranks_agree(struct comm *comm, const char *what, const char *text, struct error *err);

#endif
