/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/lessons.h"

#include <string.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"

struct draw draw_begin(const struct batch *batch, int64_t index)
{
    uint64_t stream = hash_fnv1a(batch->held_out ? "held out" : "learnt from");
    return (struct draw){.seed = stream + batch->seed * 0x9e3779b97f4a7c15u,
                         .next = (uint64_t)(batch->first + index) << 24};
}

double draw_uniform(struct draw *draw)
{
    if (draw->left == 0) {
        random_words(draw->seed, draw->next++, draw->word);
        draw->left = 4;
    }
    return (double)draw->word[--draw->left] * 0x1p-32;
}

int64_t draw_index(struct draw *draw, int64_t count)
{
    return (int64_t)((double)count * draw_uniform(draw));
}

int64_t batch_range(const struct batch *batch, const char *input)
{
    int v = graph_find_value(batch->graph, input);
    return v == NONE ? 1 : (int64_t)batch->graph->values[v].fill.b;
}
