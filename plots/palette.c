/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/palette.h"

#include <stdbool.h>
#include <string.h>

static const struct swatch swatches[PALETTE_COUNT] = {
    {"blue", 0x0072B2, 7, 0xffffff},    {"vermillion", 0xD55E00, 5, 0xffffff},
    {"green", 0x009E73, 9, 0x111111},   {"purple", 0xCC79A7, 13, 0x111111},
    {"orange", 0xE69F00, 11, 0x111111}, {"sky", 0x56B4E9, 15, 0x111111},
    {"yellow", 0xF0E442, 7, 0x111111},  {"grey", 0x999999, 5, 0x111111},
    {"dark", 0x5F6B73, 9, 0xffffff},
};

static const char *const groups[PALETTE_COUNT] = {
    "convolution",        "matrix product",         "attention",
    "recurrent",          "normalisation, softmax", "element by element",
    "pooling, reduction", "memory movement",        "other",
};

struct rule {
    const char *word; /* found anywhere in the operator's name */
    int group;
};

/* In order: the first word that is found decides. */
static const struct rule rules[] = {
    {"NonMax", 8},    {"Conv", 0},      {"Einsum", 1},    {"MatMul", 1},    {"Gemm", 1},
    {"Attention", 2}, {"LSTM", 3},      {"GRU", 3},       {"RNN", 3},       {"Normalization", 4},
    {"Softmax", 4},   {"LRN", 4},       {"Pool", 6},      {"Reduce", 6},    {"Arg", 6},
    {"TopK", 6},      {"RoiAlign", 6},  {"Embedding", 7}, {"Gather", 7},    {"Concat", 7},
    {"Split", 7},     {"Transpose", 7}, {"Reshape", 7},   {"Slice", 7},     {"Pad", 7},
    {"Copy", 7},      {"Reorder", 7},   {"Expand", 7},    {"Tile", 7},      {"Scatter", 7},
    {"Resize", 7},    {"Flatten", 7},   {"Squeeze", 7},   {"Unsqueeze", 7}, {"OneHot", 7},
    {"SpaceTo", 7},   {"DepthTo", 7},   {"Cast", 7},      {"Chain", 5},     {"Elementwise", 5},
    {"Add", 5},       {"Mul", 5},       {"Sub", 5},       {"Div", 5},       {"Relu", 5},
    {"Sigmoid", 5},   {"Tanh", 5},      {"Gelu", 5},      {"Erf", 5},       {"Exp", 5},
    {"Clip", 5},      {"Where", 5},     {"Sqrt", 5},      {"Pow", 5},       {"Swish", 5},
    {"Mish", 5},      {"Elu", 5},       {"Max", 5},       {"Min", 5},       {"Sum", 5},
    {"Log", 5},
};

static const char *const domains[] = {"vision", "recommendation", "language",
                                      "micro",  "synthetic",      "onnx"};

const struct swatch *palette_at(int index)
{
    return &swatches[index >= 0 && index < PALETTE_COUNT ? index : PALETTE_COUNT - 1];
}

int palette_of_kind(const char *kind)
{
    for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++)
        if (strstr(kind, rules[k].word))
            return rules[k].group;
    return PALETTE_COUNT - 1;
}

const char *palette_group(int index)
{
    return groups[index >= 0 && index < PALETTE_COUNT ? index : PALETTE_COUNT - 1];
}

int palette_of_domain(const char *domain)
{
    for (size_t k = 0; k < sizeof(domains) / sizeof(domains[0]); k++)
        if (strcmp(domain, domains[k]) == 0)
            return (int)k;
    return PALETTE_COUNT - 1;
}

const char *palette_domain(int index)
{
    return index >= 0 && index < (int)(sizeof(domains) / sizeof(domains[0])) ? domains[index]
                                                                             : "other";
}
