/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixtral: Jiang et al., "Mixtral of Experts", arXiv 2401.04088: of 8 feed-forward nets each token
 * takes 2. 8x22b is the later one, with the words of its instructed form. */
#include "workloads/lib/decoder.h"

static const char *const sizes[] = {"8x7b", "8x22b", NULL};
static const struct param params[] = {DECODER_PARAMS_EXPERTS("8x7b", sizes, "1")};

#define MIXTRAL(name, depth, wide, q, ffn, words, most)                                            \
    .size = (name), .layers = (depth), .width = (wide), .heads = (q), .kv_heads = 8,               \
    .head_size = 128, .inner = (ffn), .experts = 8, .chosen = 2, .vocabulary = (words),            \
    .positions = (most), .epsilon = 1e-5, .theta = 1e6

static const struct decoder networks[] = {
    {MIXTRAL("8x7b", 32, 4096, 32, 14336, 32000, 32768)},
    {MIXTRAL("8x22b", 56, 6144, 48, 16384, 32768, 65536)},
    {.size = NULL},
};

static void build(struct graph *g, const struct workload_config *config)
{
    decoder_build(g, config, networks);
}

REGISTER(workload, mixtral) = {
    .name = "mixtral",
    .domain = "language",
    .task = "text generation",
    .summary = "Mixtral (8x7B, 8x22B), unless depth says more its first layer alone, with table "
               "and head: the next token after 512, or a prompt",
    .source = "Jiang et al., arXiv 2401.04088",
    .params = params,
    .stated = "depth",
    .batch = 1,
    .precisions = 1u << PRECISION_BF16,
    .build = build,
};
