/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen3, the networks of experts: Yang et al., "Qwen3 Technical Report", arXiv 2505.09388: of 128
 * small feed-forward nets each token takes 8. The rest is as in the dense ones. */
#include "workloads/lib/decoder.h"

static const char *const sizes[] = {"30b_a3b", "235b_a22b", NULL};
static const struct param params[] = {DECODER_PARAMS_EXPERTS("30b_a3b", sizes, "2")};

#define QWEN3_MOE(name, depth, wide, q, ffn)                                                       \
    .size = (name), .layers = (depth), .width = (wide), .heads = (q), .kv_heads = 4,               \
    .head_size = 128, .inner = (ffn), .experts = 128, .chosen = 8, .vocabulary = 151936,           \
    .positions = 40960, .epsilon = 1e-6, .theta = 1e6, .norms_heads = true

static const struct decoder networks[] = {
    {QWEN3_MOE("30b_a3b", 48, 2048, 32, 768)},
    {QWEN3_MOE("235b_a22b", 94, 4096, 64, 1536)},
    {.size = NULL},
};

static void build(struct graph *g, const struct workload_config *config)
{
    decoder_build(g, config, networks);
}

REGISTER(workload, qwen3_moe) = {
    .name = "qwen3_moe",
    .domain = "language",
    .task = "text generation",
    .summary = "Qwen3 of experts (30B, 235B), unless depth says more its first two layers alone, "
               "with table and head: the next token after 512, or a prompt",
    .source = "Yang et al., arXiv 2505.09388",
    .params = params,
    .stated = "depth",
    .batch = 1,
    .precisions = 1u << PRECISION_BF16,
    .build = build,
};
