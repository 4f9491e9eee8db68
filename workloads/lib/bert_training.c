/* SPDX-License-Identifier: Apache-2.0
 *
 * What BERT is trained with, as google-research/bert's run_pretraining does it. Of the words, 15 %
 * are asked for: four in five of these are replaced by [MASK] and one in ten by any word, and the
 * encoder's token there goes through a layer with GELU and a norm and is compared with the words'
 * table. From the first token, [CLS], it says whether the second sentence follows the first. The
 * loss is the sum of both cross-entropies, each a mean. Recipe: appendix A.2 of the paper. */
#include <stdlib.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/lib/bert.h"
#include "workloads/lib/lessons.h"
#include "workloads/lib/limits.h"
#include "workloads/lib/losses.h"
#include "workloads/lib/transformer.h"

enum { NOT_ASKED = -1 };

/* The shortest made-up text of it is [CLS] [SEP] word [SEP]: a batch without words has no loss. */
enum { TOKENS_LEAST = 5 };

/* How many words of a sequence are asked for. */
static int64_t asked_of(int64_t tokens)
{
    return (15 * tokens + 99) / 100;
}

/* ---- loss ---- */

/* Where in [N T] the words are that are asked for: [N, asked] numbers below T, plus n T. */
static int flat_positions(struct graph *g, const struct bert *b, int64_t asked)
{
    int32_t *first = arena_array(&g->arena, (size_t)b->batch, sizeof(*first));
    for (int64_t n = 0; first && n < b->batch; n++)
        first[n] = (int32_t)(n * b->tokens);
    int at = graph_input(g, "masked_positions", DTYPE_I32, shape_of(b->batch, asked),
                         (struct fill){.kind = FILL_INDEX, .a = 0, .b = (double)b->tokens});
    if (!first)
        return NONE;
    at = add(g, at, graph_const(g, "sequence_starts", DTYPE_I32, shape_of(b->batch, 1), first));
    return reshape(g, at, 1, (const int64_t[]){b->batch * asked});
}

/* Logits of the words that are asked for, [N asked, V]. */
static int word_logits(struct graph *g, const struct bert *b, int x, int words, int64_t asked)
{
    x = reshape(g, x, 2, (const int64_t[]){b->batch * b->tokens, b->model});
    x = gather(g, x, flat_positions(g, b, asked), 0);
    x = gelu_tanh(g, transformer_dense(g, x, "masked.transform", b->model, 1));
    x = layer_norm(g, x, "masked.norm", 1e-12);
    int bias = graph_param(g, "masked.bias", DTYPE_F32, shape_of(b->vocabulary),
                           (struct fill){.kind = FILL_CONST, .a = 0});
    return graph_node(g, "Gemm", "masked.logits", INPUTS(x, words, bias),
                      ATTRS(attr_int("transB", 1)));
}

static int next_sentence_logits(struct graph *g, const struct bert *b, int x)
{
    x = slice(g, x, (struct range){.axis = 1, .start = 0, .stop = 1});
    x = reshape(g, x, 2, (const int64_t[]){b->batch, b->model});
    x = unary(g, "Tanh", transformer_dense(g, x, "pooler", b->model, 1));
    return transformer_dense(g, x, "next_sentence", 2, 1);
}

static void build_loss(struct graph *g, const struct workload_config *config)
{
    struct bert b = bert_of(config);
    if (!at_least(g, "vocabulary", b.vocabulary, BERT_WORDS + 2) ||
        !at_least(g, "tokens", b.tokens, TOKENS_LEAST))
        return;
    int words, x = bert_encoder(g, &b, &words);
    if (x == NONE)
        return;
    int64_t asked = asked_of(b.tokens);
    int word = graph_input(g, "masked_words", DTYPE_I32, shape_of(b.batch, asked),
                           (struct fill){.kind = FILL_INDEX, .a = 0, .b = (double)b.vocabulary});
    int random = graph_input(g, "next_is_random", DTYPE_I32, shape_of(b.batch),
                             (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2});
    int logits = word_logits(g, &b, x, words, asked);
    int next = next_sentence_logits(g, &b, x);
    int loss = add(g, cross_entropy(g, logits, word, 0, NOT_ASKED),
                   cross_entropy(g, next, random, 0, COUNT_ALL));
    graph_rename(g, loss, "loss");
    graph_rename(g, logits, "word_logits");
    graph_output(g, loss);
    graph_output(g, logits);
}

/* ---- made-up text ---- */

/* Two sentences of one theme each. Which word stands where follows from the theme and from which
 * sentence it is, but for one word in twenty, which is any. In half of the samples both sentences
 * are of one theme. */
static int32_t any_word(struct bert_text *t)
{
    return (int32_t)(BERT_WORDS + draw_index(t->draw, t->vocabulary - BERT_WORDS));
}

static int32_t word_of(struct bert_text *t, int64_t theme, int64_t sentence, int64_t place)
{
    uint64_t at = (uint64_t)((theme * 2 + sentence) * t->tokens + place);
    double share = random_uniform(hash_fnv1a("verse"), at);
    bool usual = draw_uniform(t->draw) < 0.95;
    int32_t other = any_word(t);
    return usual ? (int32_t)(BERT_WORDS + (int64_t)(share * (double)(t->vocabulary - BERT_WORDS)))
                 : other;
}

/* [CLS] first [SEP] second [SEP], then padding. Returns whether the second is of another theme. */
static bool write_text(struct bert_text *t)
{
    int64_t themes = (t->vocabulary - BERT_WORDS) / 8 + 2, theme = draw_index(t->draw, themes);
    bool random = draw_uniform(t->draw) < 0.5;
    int64_t other = (theme + 1 + draw_index(t->draw, themes - 1)) % themes;
    t->length = t->tokens - draw_index(t->draw, t->tokens / 4 + 1);
    int64_t first = (t->length - 3) / 2, middle = first + 1;
    for (int64_t k = 0; k < t->tokens; k++) {
        int64_t sentence = k > middle, place = sentence ? k - middle - 1 : k - 1;
        t->segment[k] = sentence && k < t->length;
        t->real[k] = k < t->length;
        t->id[k] = word_of(t, sentence && random ? other : theme, sentence, place > 0 ? place : 0);
        if (k == 0)
            t->id[k] = BERT_CLS;
        else if (k == middle || k == t->length - 1)
            t->id[k] = BERT_SEP;
        else if (k >= t->length)
            t->id[k] = BERT_PAD;
    }
    return random;
}

/* `count` words are asked for, or as many as there are; each at most once. */
void bert_hide_words(struct bert_text *t, int64_t count, int32_t *at, int32_t *word)
{
    int64_t left = 0, open = 0;
    for (int64_t k = 0; k < t->length; k++)
        open += t->id[k] >= BERT_WORDS;
    left = open < count ? open : count;
    int64_t given = 0;
    for (int64_t k = 0; k < t->length && left > 0; k++) {
        if (t->id[k] < BERT_WORDS)
            continue;
        if (draw_index(t->draw, open--) >= left) /* each choice is as likely as any other */
            continue;
        left--;
        at[given] = (int32_t)k;
        word[given++] = t->id[k];
        double way = draw_uniform(t->draw);
        int32_t other = any_word(t);
        t->id[k] = way < 0.8 ? BERT_MASK : way < 0.9 ? other : t->id[k];
    }
    for (; given < count; given++) {
        at[given] = 0;
        word[given] = NOT_ASKED;
    }
}

static void fill(const struct batch *batch)
{
    int32_t *id = batch_input(batch, "input_ids"), *segment = batch_input(batch, "segment_ids");
    int32_t *real = batch_input(batch, "input_mask");
    int32_t *at = batch_input(batch, "masked_positions");
    int32_t *word = batch_input(batch, "masked_words");
    int32_t *random = batch_input(batch, "next_is_random");
    int64_t tokens = batch_range(batch, "masked_positions"), asked = asked_of(tokens);
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        struct bert_text text = {.id = id + n * tokens,
                                 .segment = segment + n * tokens,
                                 .real = real + n * tokens,
                                 .tokens = tokens,
                                 .vocabulary = batch_range(batch, "input_ids"),
                                 .draw = &draw};
        random[n] = write_text(&text);
        bert_hide_words(&text, asked, at + n * asked, word + n * asked);
    }
}

/* Adam without correction of its first steps, as the code has it. */
static const struct recipe recipe = {
    .optimiser = "adamw",
    .attrs = {{.name = "epsilon", .kind = ATTR_FLOAT, .f = 1e-6},
              {.name = "corrected", .kind = ATTR_INT, .i = 0}},
    .decay = 0.01,
    .clip_norm = 1,
    .schedule = {.kind = SCHEDULE_POLYNOMIAL,
                 .rate = 1e-4,
                 .power = 1,
                 .warm_up = 10000,
                 .over_warm_up = true,
                 .steps = 1000000},
    .source = "Devlin et al., NAACL 2019, A.2; google-research/bert, optimization.py",
};

const struct training bert_training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = fill,
    .quality = &quality_accuracy,
    .answers = "word_logits",
    .targets = "masked_words",
    .lesson = "masked words of verses, and whether two verses are of one theme",
    .tiny = "tokens=16,depth=2,width=32,heads=2,vocabulary=64",
    .tiny_batch = 32,
    .tiny_rate = 0.003,
    .tiny_steps = 600,
};
