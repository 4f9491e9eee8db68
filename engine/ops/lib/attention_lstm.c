/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/attention_lstm.h"

static enum status check(const struct shape *const *in, int input, const struct shape *want,
                         struct error *err)
{
    char text[96], text_want[96];
    if (in[input] && shape_equal(in[input], want))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "input %d of an LSTM with attention is %s, not %s", input,
                in[input] ? shape_text(in[input], text) : "absent", shape_text(want, text_want));
}

enum status attention_lstm_from(const struct shape *const *in, struct attention_lstm *s,
                                struct error *err)
{
    const struct shape *x = in[ALSTM_X], *w = in[ALSTM_W], *keys = in[ALSTM_KEYS];
    *s = (struct attention_lstm){0};
    if (!x || !w || x->rank != 3 || w->rank != 2 || x->dim[2] % 4 != 0)
        return FAIL(err, STATUS_FAILED, "an LSTM with attention wants X [T,B,4H] and W [C+H,4H]");
    *s = (struct attention_lstm){.steps = x->dim[0], .batch = x->dim[1], .hidden = x->dim[2] / 4};
    s->context = w->dim[0] - s->hidden;
    s->attends = keys != NULL;
    struct shape weights = shape_of(s->context + s->hidden, 4 * s->hidden);
    struct shape state = shape_of(s->batch, s->hidden);
    if (s->context < 0 || (!s->attends && s->context != 0))
        return FAIL(err, STATUS_FAILED, "an LSTM of %lld units has %lld rows of weights",
                    (long long)s->hidden, (long long)w->dim[0]);
    TRY(check(in, ALSTM_W, &weights, err));
    TRY(check(in, ALSTM_C, &state, err));
    if (in[ALSTM_H])
        TRY(check(in, ALSTM_H, &state, err));
    if (!s->attends)
        return STATUS_OK;
    if (keys->rank != 3 || keys->dim[0] != s->batch || keys->dim[1] < 1)
        return FAIL(err, STATUS_FAILED, "an LSTM with attention wants keys [%lld,S,A], S > 0",
                    (long long)s->batch);
    s->source = keys->dim[1];
    s->keys = keys->dim[2];
    struct shape memory = shape_of(s->batch, s->source, s->context), lengths = shape_of(s->batch);
    struct shape query = shape_of(s->hidden, s->keys), score = shape_of(s->keys);
    TRY(check(in, ALSTM_MEMORY, &memory, err));
    TRY(check(in, ALSTM_LENGTHS, &lengths, err));
    TRY(check(in, ALSTM_QUERY, &query, err));
    return check(in, ALSTM_SCORE, &score, err);
}

enum status attention_lstm_infer(const struct infer *c, struct attention_lstm *s, struct error *err)
{
    const struct shape *in[ALSTM_INPUTS];
    for (int k = 0; k < ALSTM_INPUTS; k++)
        in[k] = infer_has(c, k) ? &c->in[k]->shape : NULL;
    return attention_lstm_from(in, s, err);
}

enum status attention_lstm_call(const struct ref_call *call, struct attention_lstm *s,
                                struct error *err)
{
    const struct shape *in[ALSTM_INPUTS];
    for (int k = 0; k < ALSTM_INPUTS; k++)
        in[k] = k < call->in_count && call->in[k] ? &call->in[k]->shape : NULL;
    return attention_lstm_from(in, s, err);
}

int64_t attention_lstm_length(const struct attention_lstm *s, int64_t length)
{
    return length < 1 ? 1 : length > s->source ? s->source : length;
}

struct shape attention_lstm_shape_by(const struct attention_lstm *s, int by)
{
    switch (by) {
    case ALSTM_BY_X:
        return shape_of(s->steps, s->batch, 4 * s->hidden);
    case ALSTM_BY_CONTEXT:
        return shape_of(s->steps, s->batch, s->context);
    case ALSTM_BY_ASKED:
        return shape_of(s->steps, s->batch, s->keys);
    case ALSTM_BY_KEYS:
        return shape_of(s->batch, s->source, s->keys);
    case ALSTM_BY_SCORE:
        return shape_of(s->keys);
    default:
        return shape_of(s->batch, s->hidden);
    }
}
