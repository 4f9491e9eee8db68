/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/ctc.h"

struct ctc ctc_of(const struct node *node, const struct shape *logits, const struct shape *labels)
{
    int64_t blank = node_int(node, "blank", -1);
    return (struct ctc){.steps = logits->dim[0],
                        .samples = logits->dim[1],
                        .classes = logits->dim[2],
                        .labels = labels->dim[1],
                        .blank = blank < 0 ? blank + logits->dim[2] : blank};
}
