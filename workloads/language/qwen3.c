/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen3, the dense networks: Yang et al., "Qwen3 Technical Report", arXiv 2505.09388. Queries and
 * keys are normalised, and their heads together may be wider than a token. */
#include "workloads/lib/decoder.h"

static const char *const sizes[] = {"0.6b", "1.7b", "4b", "8b", NULL};
static const struct param params[] = {DECODER_PARAMS("0.6b", sizes)};

#define QWEN3(name, depth, wide, q, ffn)                                                           \
    .size = (name), .layers = (depth), .width = (wide), .heads = (q), .kv_heads = 8,               \
    .head_size = 128, .inner = (ffn), .vocabulary = 151936, .positions = 40960, .epsilon = 1e-6,   \
    .theta = 1e6, .norms_heads = true

static const struct decoder networks[] = {
    {QWEN3("0.6b", 28, 1024, 16, 3072), .tied = true},
    {QWEN3("1.7b", 28, 2048, 16, 6144), .tied = true},
    {QWEN3("4b", 36, 2560, 32, 9728), .tied = true},
    {QWEN3("8b", 36, 4096, 32, 12288)},
    {.size = NULL},
};

static void build(struct graph *g, const struct workload_config *config)
{
    decoder_build(g, config, networks);
}

REGISTER(workload, qwen3) = {
    .name = "qwen3",
    .domain = "language",
    .task = "text generation",
    .summary = "Qwen3 (0.6B to 8B): the next token after 512, or a prompt",
    .source = "Yang et al., arXiv 2505.09388",
    .params = params,
    .batch = 1,
    .precisions = 1u << PRECISION_BF16,
    .build = build,
};
