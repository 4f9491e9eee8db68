/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuDNN offered last. To ask for the engines of an operation graph takes milliseconds, and the
 * tuner asks for the same graph as often as it has variants, twice when it prepares them; so the
 * answers for the last few graphs are kept.
 */
#ifndef ENGINE_KERNELS_CUDNN_LIB_OFFERS_H
#define ENGINE_KERNELS_CUDNN_LIB_OFFERS_H

#include "engine/kernels/cudnn/lib/engines.h"

struct offer {
    struct engines engines;
    struct opgraph graph; /* the first that was asked about; its descriptors live as long */
    struct engine_rule rule;
    int users;
};

/* The engines of the graph, as engines_find; give it back when they are no longer used. The graph
 * is asked about only if it is none of the last, and then its descriptors are the offer's. */
enum status offer_take(struct opgraph *g, const struct engine_rule *rule, struct offer **offer,
                       struct error *why);
void offer_give_back(struct offer *offer); /* may be NULL */

/* At the end, when none is used. */
void offers_release(void);

#endif
