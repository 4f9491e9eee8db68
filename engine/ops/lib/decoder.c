/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/decoder.h"

#include <math.h>
#include <string.h>

/* Worse than any sum of log probabilities, and finite so that it can be added to. */
#define NEVER (-1e9)

static enum status expect(const struct node *node, int input, const struct shape *have,
                          const struct shape *want, struct error *err)
{
    char text[96], text_want[96];
    if (shape_equal(have, want))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: input %d has shape %s, not %s", node->op->name, input,
                shape_text(have, text), shape_text(want, text_want));
}

static enum status check_attributes(const struct decoder_shape *s, struct error *err)
{
    if (s->beam < 1 || s->beam > DECODER_BEAM_MAX || s->beam >= s->vocabulary)
        return FAIL(err, STATUS_FAILED,
                    "AttentionDecoder: beam %lld is not 1 to %d, or not below %lld words",
                    (long long)s->beam, DECODER_BEAM_MAX, (long long)s->vocabulary);
    if (s->steps < 1)
        return FAIL(err, STATUS_FAILED, "AttentionDecoder: %lld steps", (long long)s->steps);
    if (s->start < 0 || s->start >= s->vocabulary || s->end < 0 || s->end >= s->vocabulary)
        return FAIL(err, STATUS_FAILED, "AttentionDecoder: words %d and %d of %lld", (int)s->start,
                    (int)s->end, (long long)s->vocabulary);
    return STATUS_OK;
}

enum status decoder_shape_from(const struct node *node, const struct shape *const *in,
                               struct decoder_shape *s, struct error *err)
{
    const struct shape *keys = in[DECODER_KEYS], *h = in[DECODER_H], *out = in[DECODER_OUTPUT];
    if (keys->rank != 3 || h->rank != 3 || out->rank != 2)
        return FAIL(err, STATUS_FAILED, "%s: keys, states and output weights have ranks %d, %d, %d",
                    node->op->name, keys->rank, h->rank, out->rank);
    *s = (struct decoder_shape){.batch = keys->dim[0],
                                .source = keys->dim[1],
                                .attention = keys->dim[2],
                                .layers = h->dim[0],
                                .hidden = h->dim[2],
                                .vocabulary = out->dim[1]};
    s->beam = node_int(node, "beam", 1);
    s->steps = node_int(node, "steps", 1);
    s->rows = s->batch * s->beam;
    s->start = (int32_t)node_int(node, "start", 1);
    s->end = (int32_t)node_int(node, "end", 2);
    s->length_penalty = node_float(node, "length_penalty", 1);
    s->forget_bias = node_float(node, "forget_bias", 1);
    s->residual = node_int(node, "residual", s->layers);
    int64_t d = s->hidden;
    const struct shape want[DECODER_INPUTS] = {
        [DECODER_KEYS] = *keys,
        [DECODER_MEMORY] = shape_of(s->batch, s->source, d),
        [DECODER_LENGTHS] = shape_of(s->batch),
        [DECODER_H] = shape_of(s->layers, s->batch, d),
        [DECODER_C] = shape_of(s->layers, s->batch, d),
        [DECODER_EMBEDDING] = shape_of(s->vocabulary, d),
        [DECODER_QUERY] = shape_of(d, s->attention),
        [DECODER_SCORE] = shape_of(s->attention),
        [DECODER_SHIFT] = shape_of(s->attention),
        [DECODER_WEIGHTS] = shape_of(s->layers, 3 * d, 4 * d),
        [DECODER_BIAS] = shape_of(s->layers, 4 * d),
        [DECODER_OUTPUT] = shape_of(d, s->vocabulary),
    };
    for (int k = 0; k < DECODER_INPUTS; k++)
        TRY(expect(node, k, in[k], &want[k], err));
    return check_attributes(s, err);
}

/* ---- hypotheses ---- */

static void *take(void *base, size_t *at, size_t bytes)
{
    void *piece = base ? (char *)base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return piece;
}

size_t decoder_beams_place(struct decoder_beams *b, const struct decoder_shape *s, void *base)
{
    size_t at = 0, rows = (size_t)s->rows;
    *b = (struct decoder_beams){.s = s};
    for (int k = 0; k < 2; k++) {
        struct decoder_hypotheses *h = k ? &b->next : &b->now;
        h->total = take(base, &at, rows * sizeof(*h->total));
        h->length = take(base, &at, rows * sizeof(*h->length));
        h->token = take(base, &at, rows * sizeof(*h->token));
        h->tokens = take(base, &at, rows * (size_t)s->steps * sizeof(*h->tokens));
        h->finished = take(base, &at, rows);
    }
    b->parent = take(base, &at, rows * sizeof(*b->parent));
    return at;
}

void decoder_begin(struct decoder_beams *b)
{
    for (int64_t r = 0; r < b->s->rows; r++) {
        b->now.total[r] = r % b->s->beam ? NEVER : 0; /* all rows of a sentence begin alike */
        b->now.length[r] = 0;
        b->now.token[r] = b->s->start;
        b->now.finished[r] = 0;
        b->parent[r] = (int32_t)r;
        for (int64_t t = 0; t < b->s->steps; t++)
            b->now.tokens[r * b->s->steps + t] = b->s->end;
    }
}

/* ((5 + length) / 6)^penalty: Wu et al. 2016, equation 14. */
static double divisor(const struct decoder_shape *s, int32_t length)
{
    return s->beam == 1 ? 1 : pow((5.0 + length) / 6, s->length_penalty);
}

void decoder_offer(const struct decoder_beams *b, struct decoder_picks *picks, int64_t row,
                   int32_t token, double gain)
{
    const struct decoder_hypotheses *h = &b->now;
    bool finished = h->finished[row], ends = token == b->s->end;
    int32_t length = h->length[row] + (!finished && !ends);
    double total = h->total[row] + (!finished ? gain : ends ? 0 : NEVER);
    struct decoder_pick pick = {.score = total / divisor(b->s, length),
                                .total = total,
                                .row = (int32_t)(row % b->s->beam),
                                .token = token};
    int at = picks->count;
    if (at == b->s->beam && !(pick.score > picks->best[at - 1].score))
        return;
    if (at == b->s->beam)
        at--;
    else
        picks->count++;
    for (; at > 0 && pick.score > picks->best[at - 1].score; at--)
        picks->best[at] = picks->best[at - 1];
    picks->best[at] = pick;
}

void decoder_accept(struct decoder_beams *b, int64_t sentence, const struct decoder_picks *picks,
                    int64_t step)
{
    const struct decoder_hypotheses *from = &b->now, *to = &b->next;
    int64_t steps = b->s->steps;
    for (int k = 0; k < picks->count; k++) {
        const struct decoder_pick *pick = &picks->best[k];
        int64_t row = sentence * b->s->beam + k, parent = sentence * b->s->beam + pick->row;
        bool ends = pick->token == b->s->end, finished = from->finished[parent];
        memcpy(to->tokens + row * steps, from->tokens + parent * steps,
               (size_t)steps * sizeof(*to->tokens));
        to->tokens[row * steps + step] = pick->token;
        to->token[row] = pick->token;
        to->total[row] = pick->total;
        to->length[row] = from->length[parent] + (!finished && !ends);
        to->finished[row] = finished || ends;
        b->parent[row] = (int32_t)parent;
    }
}

bool decoder_turn(struct decoder_beams *b)
{
    struct decoder_hypotheses made = b->next;
    b->next = b->now;
    b->now = made;
    for (int64_t r = 0; r < b->s->rows; r++)
        if (!made.finished[r])
            return true;
    return false;
}

double decoder_score(const struct decoder_beams *b, int64_t row)
{
    return b->now.total[row] / divisor(b->s, b->now.length[row]);
}
