/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT-base, uncased: Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional
 * Transformers for Language Understanding", NAACL 2019; question answering on SQuAD 1.1. It learns
 * masked words and whether a sentence follows another. */
#include "workloads/lib/bert.h"

static const struct param params[] = {BERT_PARAMS("12", "768", "12")};

REGISTER(workload, bert_base) = {
    .name = "bert_base",
    .domain = "language",
    .task = "question answering",
    .summary = "BERT-base, uncased, SQuAD span head, sequences of 384 tokens",
    .source = "Devlin et al., NAACL 2019; AI Matrix BERT_NVIDIA",
    .params = params,
    .batch = 1,
    .build = bert_squad,
    .training = &bert_training,
};
