/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT-base, uncased: Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional
 * Transformers for Language Understanding", NAACL 2019; question answering on SQuAD 1.1. */
#include "workloads/lib/bert.h"
#include "workloads/workload.h"

static const struct param params[] = {
    {"tokens", "384", NULL, "sequence length, padded; 512 at most"},
    {.name = NULL},
};

static void build(struct graph *g, const struct workload_config *config)
{
    struct bert bert = {.batch = config->batch,
                        .tokens = config_int(config, "tokens"),
                        .layers = 12,
                        .model = 768,
                        .heads = 12,
                        .inner = 3072,
                        .vocabulary = 30522,
                        .positions = 512};
    bert_squad(g, &bert);
}

REGISTER(workload, bert_base) = {
    .name = "bert_base",
    .domain = "language",
    .task = "question answering",
    .summary = "BERT-base, uncased, SQuAD span head, sequences of 384 tokens",
    .source = "Devlin et al., NAACL 2019; AI Matrix BERT_NVIDIA",
    .params = params,
    .batch = 1,
    .build = build,
};
