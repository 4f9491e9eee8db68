/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/sentences.h"

#include "workloads/lib/lessons.h"

/* Of `count` words the one a third of the dictionary further. */
static int32_t translation(int64_t word, int64_t count)
{
    return (int32_t)(SENTENCES_FIRST + (word + count / 3) % count);
}

void sentences_fill(const struct batch *batch)
{
    int32_t *source = batch_input(batch, "source"), *lengths = batch_input(batch, "source_length");
    int32_t *given = batch_input(batch, "target_given"), *target = batch_input(batch, "target");
    const struct graph *g = batch->graph;
    int64_t words = batch_range(batch, "source") - SENTENCES_FIRST;
    int64_t limit = batch_range(batch, "source_length") - 1;
    int64_t room = g->values[graph_find_value(g, "target")].shape.dim[1];
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        int64_t length = limit - draw_index(&draw, limit / 2);
        length = length < room ? length : room - 1;
        lengths[n] = (int32_t)length;
        for (int64_t t = 0; t < room; t++) {
            given[n * room + t] = t == 0 ? SENTENCES_START : SENTENCES_END;
            target[n * room + t] = t == length ? SENTENCES_END : SENTENCES_NOTHING;
        }
        for (int64_t s = 0; s < limit; s++) {
            int64_t word = draw_index(&draw, words), at = n * room + length - 1 - s;
            source[n * limit + s] = (int32_t)(s < length ? SENTENCES_FIRST + word : SENTENCES_END);
            if (s >= length)
                continue;
            target[at] = translation(word, words);
            given[at + 1] = target[at];
        }
    }
}
