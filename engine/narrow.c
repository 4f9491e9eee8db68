/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/narrow.h"

#include <string.h>

#include "engine/chain.h"

static const char *const work[] = {"Attention",
                                   "AttentionDecoder",
                                   "AUGRU",
                                   "Conv",
                                   "ConvTranspose",
                                   "EmbeddingBag",
                                   "Gemm",
                                   "GRU",
                                   "LSTM",
                                   "MatMul",
                                   "RNN",
                                   "SpMM",
                                   NULL};

/* Beside elementwise expressions (engine/chain.h). */
static const char *const math[] = {"AveragePool",
                                   "BatchNormalization",
                                   "GlobalAveragePool",
                                   "GlobalMaxPool",
                                   "LayerNormalization",
                                   "LogSoftmax",
                                   "LpNormalization",
                                   "LRN",
                                   "MaxPool",
                                   "MaxRoiPool",
                                   "ReduceL1",
                                   "ReduceL2",
                                   "ReduceLogSum",
                                   "ReduceLogSumExp",
                                   "ReduceMax",
                                   "ReduceMean",
                                   "ReduceMin",
                                   "ReduceProd",
                                   "ReduceSum",
                                   "ReduceSumSquare",
                                   "Resize",
                                   "RMSNormalization",
                                   "RoiAlign",
                                   "Softmax",
                                   "Upsample",
                                   NULL};

/* Operators with a rule for it (op->move) are of this class by themselves. */
static const char *const moves[] = {"Gather",    "GatherElements", "GatherND",
                                    "OneHot",    "Scatter",        "ScatterElements",
                                    "ScatterND", "Where",          NULL};

static const struct special {
    const char *op;
    unsigned inputs; /* bit k: input k becomes narrow; 0: all */
    int roundings;   /* how often libraries round on the way through; all others once, the result */
} specials[] = {
    {"Attention", 0, 2},          /* the weights of the second product */
    {"AttentionDecoder", 0, 4},   /* logits and the choice of words are in f32 */
    {"AUGRU", 0, 4},              /* the state, in every step */
    {"BatchNormalization", 1, 1}, /* statistics and factors stay in f32 */
    {"GRU", 0, 4},
    {"LSTM", 0, 4},
    {"MaxRoiPool", 1, 1},   /* corners of regions are pixels: bf16 has 8 bits for them */
    {"OneHot", 1u << 2, 1}, /* the two values; indices may be floats, too */
    {"Resize", 1, 1},       /* neither region nor scales */
    {"RNN", 0, 4},
    {"RoiAlign", 1, 1},
    {"Upsample", 1, 1},
};

static bool is_listed(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

static const struct special *special_of(const struct op *op)
{
    for (int k = 0; k < ARRAY_COUNT(specials); k++)
        if (strcmp(specials[k].op, op->name) == 0)
            return &specials[k];
    return NULL;
}

enum narrow_class narrow_class_of(const struct op *op)
{
    return is_listed(work, op->name)                            ? NARROW_WORK
           : chain_knows(op->name) || is_listed(math, op->name) ? NARROW_MATH
           : op->move || is_listed(moves, op->name)             ? NARROW_MOVE
                                                                : NARROW_NEVER;
}

bool narrow_takes(const struct op *op, int k)
{
    const struct special *special = special_of(op);
    unsigned inputs = special ? special->inputs : 0;
    bool takes = inputs == 0 || (k < 32 && inputs >> k & 1);
    bool decides_shape = k < 32 && op->const_inputs >> k & 1;
    return narrow_class_of(op) != NARROW_NEVER && takes && !decides_shape;
}

double narrow_unit(enum dtype dtype)
{
    return dtype == DTYPE_BF16     ? 0x1p-7
           : dtype == DTYPE_F16    ? 0x1p-10
           : dtype == DTYPE_F8E4M3 ? 0x1p-3
                                   : 0;
}

/* Two results round to neighbours at most, which differ by a whole unit. */
double narrow_tolerance(const struct op *op, enum dtype out)
{
    const struct special *special = special_of(op);
    return narrow_unit(out) * (special ? special->roundings : 1);
}
