/* SPDX-License-Identifier: Apache-2.0
 *
 * Language models that write word after word: decoders alone, as Llama and its kin are (Touvron et
 * al., 2023). Two phases: the whole prompt at once up to the first word, and one word more after
 * many, whose keys and values are in caches. */
#ifndef WORKLOADS_LIB_DECODER_H
#define WORKLOADS_LIB_DECODER_H

#include "workloads/workload.h"

/* The parameters of all; `name` of a size is a choice of the first. */
#define DECODER_PARAMS_OF(size, sizes, weights, weights_help, depth, depth_help)                   \
    {"size", size, sizes, "which of the published networks"},                                      \
        {"phase", "decode", decoder_phases,                                                        \
         "decode: the next token of a text; prefill: a whole prompt and its first token"},         \
        {"context", "512", NULL, "tokens of the prompt, or before the one that is next"},          \
        {"weights", "floats", weights, weights_help},                                              \
        {"depth", depth, NULL, "how many of the layers, from the first on" depth_help},            \
        {"vocabulary", "0", NULL, "how many of the words (0: all)"},                               \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define DECODER_PARAMS(size, sizes)                                                                \
    DECODER_PARAMS_OF(size, sizes, decoder_weights,                                                \
                      "i8, i4: so many bits for each, and a factor for each 32 of a row", "0",     \
                      " (0: all)")
/* Of networks of experts: a few layers are what a machine holds. */
#define DECODER_PARAMS_EXPERTS(size, sizes, depth)                                                 \
    DECODER_PARAMS_OF(size, sizes, decoder_weights_of_experts,                                     \
                      "experts have no others: they are not quantised", depth,                     \
                      " (0: all, which take tens of gigabytes)")
extern const char *const decoder_phases[], *const decoder_weights[];
extern const char *const decoder_weights_of_experts[];

struct decoder {
    const char *size;
    int64_t layers, width, inner; /* inner: of the feed-forward net, or of each expert */
    int64_t heads, kv_heads, head_size;
    int64_t vocabulary, positions; /* positions: how long a text may be */
    bool tied;                     /* the table of words is the last layer's weights, too */
    bool norms_heads;              /* queries and keys are normalised head by head */
    int64_t experts, chosen;       /* of these each token chooses so many; 0: there are none */
    double epsilon;
    double theta;   /* base of the rotations' wavelengths */
    double stretch; /* Llama 3.1's: long waves are longer by this factor; 0: none are */
};

/* workload.build of a table of sizes, which ends with size NULL. */
void decoder_build(struct graph *g, const struct workload_config *config,
                   const struct decoder *sizes);

#endif
