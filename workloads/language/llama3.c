/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama 3: Grattafiori et al., "The Llama 3 Herd of Models", arXiv 2407.21783; 1B and 3B are those
 * of Llama 3.2, the others of 3.1. */
#include "workloads/lib/decoder.h"

static const char *const sizes[] = {"1b", "3b", "8b", "70b", "405b", NULL};
static const struct param params[] = {DECODER_PARAMS("1b", sizes)};

#define LLAMA3(name, depth, wide, q, kv, head, ffn)                                                \
    .size = (name), .layers = (depth), .width = (wide), .heads = (q), .kv_heads = (kv),            \
    .head_size = (head), .inner = (ffn), .vocabulary = 128256, .positions = 131072,                \
    .epsilon = 1e-5, .theta = 5e5

static const struct decoder networks[] = {
    {LLAMA3("1b", 16, 2048, 32, 8, 64, 8192), .tied = true, .stretch = 32},
    {LLAMA3("3b", 28, 3072, 24, 8, 128, 8192), .tied = true, .stretch = 32},
    {LLAMA3("8b", 32, 4096, 32, 8, 128, 14336), .stretch = 8},
    {LLAMA3("70b", 80, 8192, 64, 8, 128, 28672), .stretch = 8},
    {LLAMA3("405b", 126, 16384, 128, 8, 128, 53248), .stretch = 8},
    {.size = NULL},
};

static void build(struct graph *g, const struct workload_config *config)
{
    decoder_build(g, config, networks);
}

REGISTER(workload, llama3) = {
    .name = "llama3",
    .domain = "language",
    .task = "text generation",
    .summary = "Llama 3 (1B to 405B): the next token after 512, or a prompt",
    .source = "Grattafiori et al., arXiv 2407.21783",
    .params = params,
    .batch = 1,
    .precisions = 1u << PRECISION_BF16,
    .build = build,
};
