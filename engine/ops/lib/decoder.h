/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reference and the kernel of AttentionDecoder share: sizes, and the bookkeeping of the
 * hypotheses. A sentence has `beam` rows; greedy decoding is a beam of one whose scores are sums of
 * logits instead of log probabilities.
 */
#ifndef ENGINE_OPS_LIB_DECODER_H
#define ENGINE_OPS_LIB_DECODER_H

#include "engine/graph/op.h"

enum decoder_input {
    DECODER_KEYS,      /* [B, S, A]: memory as the attention compares it */
    DECODER_MEMORY,    /* [B, S, H] */
    DECODER_LENGTHS,   /* i32 [B]: of the source sentences */
    DECODER_H,         /* [L, B, H]: initial states */
    DECODER_C,         /* [L, B, H] */
    DECODER_EMBEDDING, /* [V, H] */
    DECODER_QUERY,     /* [H, A] */
    DECODER_SCORE,     /* [A]: v of the attention */
    DECODER_SHIFT,     /* [A]: b of the attention */
    DECODER_WEIGHTS,   /* [L, 3 H, 4 H]: rows input, context, state; columns i, g, f, o */
    DECODER_BIAS,      /* [L, 4 H] */
    DECODER_OUTPUT,    /* [H, V] */
    DECODER_INPUTS
};

struct decoder_shape {
    int64_t batch, source, hidden, attention, layers, vocabulary; /* B, S, H, A, L, V */
    int64_t beam, steps, rows;                                    /* rows: B beam */
    int32_t start, end;
    double length_penalty, forget_bias;
    int64_t residual; /* the first layer whose input is added to its output */
};

enum status decoder_shape_from(const struct node *node, const struct shape *const *in,
                               struct decoder_shape *s, struct error *err);

/* Per row; `next` is what the step under way makes of it. */
struct decoder_hypotheses {
    double *total;   /* sum of log probabilities (greedy: of logits) */
    int32_t *length; /* words, `end` not counted */
    int32_t *token;  /* the last word */
    int32_t *tokens; /* [rows, steps] */
    uint8_t *finished;
};

struct decoder_beams {
    const struct decoder_shape *s;
    struct decoder_hypotheses now, next;
    int32_t *parent; /* per row: the row whose state it goes on from */
};

/* Bytes that beams need, and their arrays in base unless that is NULL. */
size_t decoder_beams_place(struct decoder_beams *b, const struct decoder_shape *s, void *base);
void decoder_begin(struct decoder_beams *b);

/* One way of going on; row counts within the sentence. */
struct decoder_pick {
    double score, total;
    int32_t row, token;
};
enum { DECODER_BEAM_MAX = 32 };
struct decoder_picks {
    int count;
    struct decoder_pick best[DECODER_BEAM_MAX]; /* descending scores; equal ones as they came */
};

/* Offers word `token` for an absolute row; gain: its log probability (greedy: logit). */
void decoder_offer(const struct decoder_beams *b, struct decoder_picks *picks, int64_t row,
                   int32_t token, double gain);
/* Makes the best picks the rows of the sentence after this step. */
void decoder_accept(struct decoder_beams *b, int64_t sentence, const struct decoder_picks *picks,
                    int64_t step);
/* Ends a step; false: all hypotheses are finished. */
bool decoder_turn(struct decoder_beams *b);
/* Score of a row for the output. */
double decoder_score(const struct decoder_beams *b, int64_t row);

#endif
