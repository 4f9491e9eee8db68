/* SPDX-License-Identifier: Apache-2.0
 * What generators say of their own samples: of those that are 1 with probability p, the share p is.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/lib/unit.h"
#include "workloads/training.h"

enum { BATCH = 1000, BATCHES = 20, SAMPLES = BATCH * BATCHES, BINS = 10 };

struct samples {
    float said[SAMPLES], happened[SAMPLES];
};

static void make(const char *spec, struct samples *s)
{
    struct graph *g;
    const struct training *training;
    MUST(workload_open_judged, spec, BATCH, &g, &training);
    assert_true(training->bayes && training->quality == &quality_auc);
    void **data = calloc((size_t)g->input_count + 1, sizeof(*data));
    assert_non_null(data);
    for (int k = 0; k < g->input_count; k++)
        if (batch_gives(g, k))
            data[k] = calloc((size_t)shape_count(&g->values[g->inputs[k]].shape), 8);
    struct batch batch = {.graph = g, .data = data, .size = BATCH, .held_out = true};
    for (; batch.first < SAMPLES; batch.first += BATCH) {
        batch.bayes = s->said + batch.first;
        training->fill(&batch);
        const float *target = batch_input(&batch, training->targets);
        for (int n = 0; n < BATCH; n++)
            s->happened[batch.first + n] = target[n];
    }
    for (int k = 0; k < g->input_count; k++)
        free(data[k]);
    free(data);
    graph_free(g);
}

/* In each tenth of [0, 1], to four standard deviations. */
static void is_calibrated(const char *spec)
{
    static struct samples s;
    double said[BINS] = {0}, happened[BINS] = {0}, variance[BINS] = {0};
    make(spec, &s);
    for (int n = 0; n < SAMPLES; n++) {
        double p = (double)s.said[n];
        assert_true(p >= 0 && p <= 1);
        int bin = p < 1 ? (int)(p * BINS) : BINS - 1;
        said[bin] += p;
        happened[bin] += (double)s.happened[n];
        variance[bin] += p * (1 - p);
    }
    for (int bin = 0; bin < BINS; bin++)
        assert_true(fabs(said[bin] - happened[bin]) <= 4 * sqrt(variance[bin]) + 1);
    struct judged judged = {s.said, s.happened, DTYPE_F32, SAMPLES, SAMPLES};
    double auc = quality_auc.of(&judged);
    assert_true(auc > 0.8 && auc < 1); /* something can be learnt, and not everything */
}

TEST(ncf_knows_how_likely_its_pairs_are)
{
    is_calibrated("ncf:users=64,items=48");
}

TEST(wide_deep_knows_how_likely_incomes_are)
{
    is_calibrated("wide_deep");
}

TEST(din_knows_how_likely_clicks_are)
{
    is_calibrated("din:items=60,history=8");
}

TEST(dien_knows_how_likely_clicks_are)
{
    is_calibrated("dien:users=40,items=60,categories=8,history=8");
}

TEST(dlrm_dcnv2_knows_how_likely_clicks_are)
{
    is_calibrated("dlrm_dcnv2:rows=20,thin=16");
}
