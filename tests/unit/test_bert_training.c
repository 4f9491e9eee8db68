/* SPDX-License-Identifier: Apache-2.0
 * The text that BERT learns from. */

#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "workloads/training.h"

enum { BATCH = 200, TOKENS = 40, ASKED = 6, MASK = 3, FIRST_WORD = 4, INPUTS_MAX = 512 };

static int32_t *of(const struct graph *g, void *const *data, const char *name)
{
    struct batch batch = {.graph = g, .data = data};
    return batch_input(&batch, name);
}

TEST(words_that_are_asked_for_are_hidden)
{
    struct graph *g;
    const struct training *training;
    void *data[INPUTS_MAX] = {0};
    MUST(workload_open_loss,
         "bert_base:tokens=40,depth=1,width=8,heads=1,"
         "vocabulary=90",
         BATCH, &g, &training);
    assert_true(g->input_count <= INPUTS_MAX);
    for (int k = 0; k < g->input_count; k++)
        if (batch_gives(g, k))
            data[k] = calloc((size_t)shape_count(&g->values[g->inputs[k]].shape), sizeof(int32_t));
    training->fill(&(struct batch){.graph = g, .data = data, .size = BATCH});
    const int32_t *id = of(g, data, "input_ids"), *real = of(g, data, "input_mask");
    const int32_t *at = of(g, data, "masked_positions"), *word = of(g, data, "masked_words");
    int hidden = 0, kept = 0, places[TOKENS] = {0};
    for (int n = 0; n < BATCH; n++)
        for (int k = 0; k < ASKED; k++) {
            int32_t place = at[n * ASKED + k], now = id[n * TOKENS + place];
            assert_true(real[n * TOKENS + place] == 1 && word[n * ASKED + k] >= FIRST_WORD);
            assert_true(k == 0 || place > at[n * ASKED + k - 1]);
            hidden += now == MASK;
            kept += now == word[n * ASKED + k];
            places[place]++;
        }
    /* 960 and 120 of 1200 are expected; four deviations of such draws are 55 and 42. */
    assert_true(abs(hidden - 960) < 55 && abs(kept - 120) < 45);
    for (int k = 1; k < 12; k++) /* places that are words in every sample: 36 are expected */
        assert_true(places[k] > 10 && places[k] < 70);
    for (int k = 0; k < g->input_count; k++)
        free(data[k]);
    graph_free(g);
}
