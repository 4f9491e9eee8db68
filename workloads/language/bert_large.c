/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT-large, uncased: Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional
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
                        .layers = 24,
                        .model = 1024,
                        .heads = 16,
                        .inner = 4096,
                        .vocabulary = 30522,
                        .positions = 512};
    bert_squad(g, &bert);
}

REGISTER(workload, bert_large) = {
    .name = "bert_large",
    .domain = "language",
    .task = "question answering",
    .summary = "BERT-large, uncased, SQuAD span head, sequences of 384 tokens",
    .source = "Devlin et al., NAACL 2019; AI Matrix BERT_NVIDIA",
    .params = params,
    .table1_batch = 2,
    .batch = 1,
    .build = build,
};
