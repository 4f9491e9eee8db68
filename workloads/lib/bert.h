/* SPDX-License-Identifier: Apache-2.0
 * BERT encoders of any size (Devlin et al., NAACL 2019): the span head of SQuAD for inference, and
 * what they are trained with, masked words and next sentences. */
#ifndef WORKLOADS_LIB_BERT_H
#define WORKLOADS_LIB_BERT_H

#include "workloads/lib/layers.h"
#include "workloads/lib/lessons.h"
#include "workloads/training.h"

/* The parameters of both; heads that are 64 wide. */
#define BERT_PARAMS(layers, width, heads)                                                          \
    {"tokens", "384", NULL, "sequence length, padded; 512 at most, 5 at least to learn"},          \
        {"depth", layers, NULL, "layers of the encoder, 1000 at most"},                            \
        {"width", width, NULL, "of a token; a feed-forward net is four times as wide"},            \
        {"heads", heads, NULL, "of an attention, which share the width"},                          \
        {"vocabulary", "30522", NULL, "rows of the words' table"},                                 \
        {"dropout", "all", bert_dropout, "while it learns: what loses 0.1 of its elements"},       \
    {                                                                                              \
        .name = NULL                                                                               \
    }
extern const char *const bert_dropout[];

struct bert {
    int64_t batch, tokens;               /* N, T */
    int64_t layers, model, heads, inner; /* L, D, G, feed-forward width */
    int64_t vocabulary, positions;
    double drop, drop_attention; /* while it learns: the share of elements that is dropped */
};

struct bert bert_of(const struct workload_config *config);
/* The last layer's tokens, [N, T, D]; *words: the words' table. NONE after a failure. */
int bert_encoder(struct graph *g, const struct bert *b, int *words);

/* workload.build */
void bert_squad(struct graph *g, const struct workload_config *config);

extern const struct training bert_training;

/* ---- samples ---- */

/* Ids; words are those from BERT_WORDS on. */
enum { BERT_PAD, BERT_CLS, BERT_SEP, BERT_MASK, BERT_WORDS };

/* A sample: [CLS] first [SEP] second [SEP], then padding. */
struct bert_text {
    int32_t *id, *segment, *real; /* [T] */
    int64_t tokens, length;       /* T; length: without padding */
    int64_t vocabulary;
    struct draw *draw;
};

/* `count` words are asked for, or as many as there are, each at most once: where they are and which
 * ones, and they are hidden. */
void bert_hide_words(struct bert_text *text, int64_t count, int32_t *at, int32_t *word);

#endif
