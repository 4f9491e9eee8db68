/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT-large, uncased: Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional
 * Transformers for Language Understanding", NAACL 2019; question answering on SQuAD 1.1. It learns
 * masked words and whether a sentence follows another. */
#include "workloads/lib/bert.h"

static const struct param params[] = {BERT_PARAMS("24", "1024", "16")};

REGISTER(workload, bert_large) = {
    .name = "bert_large",
    .domain = "language",
    .task = "question answering",
    .summary = "BERT-large, uncased, SQuAD span head, sequences of 384 tokens",
    .source = "Devlin et al., NAACL 2019; AI Matrix BERT_NVIDIA",
    .params = params,
    .table1_batch = 2,
    .batch = 1,
    .build = bert_squad,
    .training = &bert_training,
};
