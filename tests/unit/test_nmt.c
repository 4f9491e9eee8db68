/* SPDX-License-Identifier: Apache-2.0
 * The two forms of the translator: what the loop says word by word, the form that learns finds most
 * likely word for word, for both have the same weights. */

#include <math.h>
#include <string.h>

#include "engine/reference/reference.h"
#include "tests/lib/unit.h"
#include "workloads/training.h"

enum { INPUTS_MAX = 64, OUTPUTS_MAX = 64, BATCH = 3, WORDS = 6, VOCABULARY = 12 };

static const char spec[] = "nmt:source=5,target=6,vocabulary=12,width=8";

struct results {
    struct graph *g;
    struct ref_tensor in[INPUTS_MAX], out[OUTPUTS_MAX];
};

static struct ref_tensor *named(struct results *r, const char *name)
{
    for (int k = 0; k < r->g->input_count; k++)
        if (strcmp(r->g->values[r->g->inputs[k]].name, name) == 0)
            return &r->in[k];
    for (int k = 0; k < r->g->output_count; k++)
        if (strcmp(r->g->values[r->g->outputs[k]].name, name) == 0)
            return &r->out[k];
    fail_msg("there is no %s", name);
    return NULL;
}

static void give_inputs(struct results *r)
{
    assert_true(r->g->input_count <= INPUTS_MAX && r->g->output_count <= OUTPUTS_MAX);
    MUST(reference_inputs, r->g, r->in, NULL);
}

static void release(struct results *r)
{
    for (int k = 0; k < r->g->input_count; k++)
        ref_release(&r->in[k]);
    for (int k = 0; k < r->g->output_count; k++)
        ref_release(&r->out[k]);
    graph_free(r->g);
}

static int64_t likeliest(const double *logits)
{
    int64_t best = 0;
    for (int64_t k = 1; k < VOCABULARY; k++)
        if (logits[k] > logits[best])
            best = k;
    return best;
}

TEST(both_decoders_say_the_same)
{
    struct results loop = {0}, given = {0};
    const struct training *training;
    MUST(workload_open, spec, BATCH, PRECISION_F32, &loop.g);
    give_inputs(&loop);
    MUST(reference_run, loop.g, loop.in, loop.out, NULL);
    MUST(workload_open_judged, spec, BATCH, &given.g, &training);
    give_inputs(&given);
    const int64_t *words = named(&loop, "words")->i;
    int64_t *before = named(&given, "target_given")->i, *target = named(&given, "target")->i;
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t t = 0; t < WORDS; t++) {
            before[n * WORDS + t] = t ? words[n * WORDS + t - 1] : 1;
            target[n * WORDS + t] = words[n * WORDS + t];
        }
    assert_memory_equal(named(&loop, "source")->i, named(&given, "source")->i,
                        (size_t)named(&loop, "source")->count * sizeof(int64_t));
    MUST(reference_run, given.g, given.in, given.out, NULL);
    const double *logits = named(&given, "word_logits")->f;
    int64_t compared = 0, first = words[0], others = 0;
    for (int64_t n = 0; n < BATCH; n++) {
        double score = 0;
        bool ended = false;
        for (int64_t t = 0; t < WORDS && !ended; t++) {
            const double *row = logits + (n * WORDS + t) * VOCABULARY;
            int64_t word = words[n * WORDS + t];
            assert_int_equal(likeliest(row), word);
            score += row[word];
            ended = word == 2;
            others += word != first;
            compared++;
        }
        assert_true(fabs(score - named(&loop, "scores")->f[n]) < 1e-12);
    }
    assert_true(compared > WORDS && others > 0);
    release(&given);
    release(&loop);
}
