/* SPDX-License-Identifier: Apache-2.0
 *
 * Which element types an operator takes, from the type constraints of the ONNX operator schemas
 * (all versions together), and of what kind its attributes are. References read floats and integers
 * from different places, so a file that breaks these rules must not get that far. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "workloads/onnx/import/import.h"

/* A letter per input, the last one for all further inputs: f floats, i integers, b bool, n numbers
 * (floats or integers), a anything. Capital letters have one type between them. */
struct signature {
    const char *inputs;
    const char *ops; /* separated by blanks, one at both ends */
};

static const struct signature signatures[] = {
    {"f", " Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Conv"
          " ConvTranspose Cos Cosh Det DynamicQuantizeLinear Elu Exp Floor Gelu GlobalAveragePool"
          " GlobalLpPool GlobalMaxPool GroupNormalization HardSigmoid HardSwish Hardmax"
          " InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax"
          " LpNormalization LpPool MaxRoiPool Mean MeanVarianceNormalization Mish RMSNormalization"
          " Reciprocal Round Selu Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt Sum Tan Tanh"
          " ThresholdedRelu "},
    {"n", " Abs ArgMax ArgMin Erf MaxPool Neg Relu Shrink Sign Pow "},
    {"N", " Add Sub Mul Div Mod Less LessOrEqual Greater GreaterOrEqual PRelu MatMul Gemm Clip"
          " Range Max Min Einsum "},
    {"i", " BlackmanWindow HannWindow HammingWindow ConstantOfShape ConvInteger MatMulInteger "},
    {"I", " BitShift "},
    {"b", " And Or Xor Not "},
    {"A", " Concat Equal "},
    {"bAA", " Where "},
    {"ab", " Compress "},
    {"af", " GridSample Upsample "},
    {"affi", " Resize "},
    {"ai", " Expand Gather GatherElements GatherND ReduceMax ReduceMin Reshape ReverseSequence"
           " Squeeze Unsqueeze Slice Split Tile Trilu "},
    {"ni", " CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum"
           " ReduceSumSquare TopK "},
    {"AAi", " TensorScatter "},
    {"AiA", " Scatter ScatterElements ScatterND "},
    {"AiAi", " Pad "},
    {"nna", " OneHot "},
    {"ffb", " Dropout "},
    {"FFFi", " RotaryEmbedding "},
    {"ffffif", " GRU RNN LSTM "},
    {"ffi", " RoiAlign "},
    {"ffiff", " NonMaxSuppression "},
    {"fif", " NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss "},
    {"fifi", " STFT "},
    {"fffaffi", " Attention "},
    {"fii", " DFT MaxUnpool "},
    {"iiiff", " MelWeightMatrix "},
    {"nfn", " QuantizeLinear "},
    {"nfn", " DequantizeLinear "},
    {"ifiififi", " QLinearConv QLinearMatMul "},
    {"FiFniF", " MatMulNBits "},
    {"iifi", " GatherBlockQuantized "},
};

static const char *signature_of(const char *op)
{
    size_t length = strlen(op);
    for (int k = 0; k < ARRAY_COUNT(signatures); k++) {
        const char *at = signatures[k].ops;
        while ((at = strstr(at + 1, op)))
            if (at[-1] == ' ' && at[length] == ' ')
                return signatures[k].inputs;
    }
    return "a";
}

static bool allows(char letter, enum dtype dtype)
{
    switch (tolower((unsigned char)letter)) {
    case 'f':
        return dtype_is_float(dtype);
    case 'i':
        return !dtype_is_float(dtype) && dtype != DTYPE_BOOL;
    case 'b':
        return dtype == DTYPE_BOOL;
    case 'n':
        return dtype != DTYPE_BOOL;
    default:
        return true;
    }
}

static const char *words_for(char letter)
{
    switch (tolower((unsigned char)letter)) {
    case 'f':
        return "floats";
    case 'i':
        return "integers";
    case 'b':
        return "bool";
    default:
        return "numbers";
    }
}

enum status check_draft_types(const struct graph *g, const struct draft *d, struct error *err)
{
    const char *letters = signature_of(d->op);
    size_t last = strlen(letters) - 1;
    enum dtype shared = DTYPE_NONE;
    for (int k = 0; k < d->input_count; k++) {
        char letter = letters[(size_t)k < last ? (size_t)k : last];
        if (d->inputs[k] == NONE)
            continue;
        enum dtype dtype = g->values[d->inputs[k]].dtype;
        if (!allows(letter, dtype))
            return FAIL(err, STATUS_FAILED, "input %d must be %s, it is %s", k, words_for(letter),
                        dtype_name(dtype));
        if (!isupper((unsigned char)letter))
            continue;
        if (shared != DTYPE_NONE && dtype != shared)
            return FAIL(err, STATUS_FAILED, "input %d is %s, those before it are %s", k,
                        dtype_name(dtype), dtype_name(shared));
        shared = dtype;
    }
    return STATUS_OK;
}

/* ---- attributes ---- */

/* A name means the same kind in all operators; those that are not here are integers. */
struct attr_names {
    enum attr_kind kind;
    const char *words, *names;
};

static const struct attr_names attr_names[] = {
    {ATTR_FLOAT, "a number",
     " alpha beta bias clip cubic_coeff_a epsilon extrapolation_value gamma lambd max min momentum"
     " ratio scale seed softcap spatial_scale value_float "},
    {ATTR_FLOATS, "a list of numbers", " activation_alpha activation_beta scales value_floats "},
    {ATTR_INTS, "a list of integers",
     " axes dilations ends kernel_shape output_padding output_shape paddings pads perm pooled_shape"
     " shape split starts strides value_ints "},
    {ATTR_STRING, "a string",
     " approximate auto_pad coordinate_transformation_mode direction equation"
     " keep_aspect_ratio_policy mode nearest_mode padding_mode reduction "},
    {ATTR_STRINGS, "a list of strings", " activations "},
};

/* One integer is a list and a number, too: some exporters write it so. */
static bool fits(const struct attr *attr, enum attr_kind wanted)
{
    return attr->kind == wanted ||
           (attr->kind == ATTR_INT && (wanted == ATTR_FLOAT || wanted == ATTR_INTS));
}

enum status check_attr_kind(const struct attr *attr, struct error *err)
{
    char name[64];
    snprintf(name, sizeof(name), " %s ", attr->name);
    if (strcmp(attr->name, "value") == 0) /* a tensor, or a number in old versions of Pad */
        return STATUS_OK;
    for (int k = 0; k < ARRAY_COUNT(attr_names); k++)
        if (strstr(attr_names[k].names, name))
            return fits(attr, attr_names[k].kind)
                       ? STATUS_OK
                       : FAIL(err, STATUS_FAILED, "attribute \"%s\" must be %s", attr->name,
                              attr_names[k].words);
    return attr->kind == ATTR_INT
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED, "attribute \"%s\" must be an integer", attr->name);
}
