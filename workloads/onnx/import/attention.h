/* SPDX-License-Identifier: Apache-2.0
 *
 * For the importer: ONNX's Attention on its way into nodes of ours. attention.c reads the node and
 * computes the result, attention_mask.c says which keys a query sees. */
#ifndef WORKLOADS_ONNX_IMPORT_ATTENTION_H
#define WORKLOADS_ONNX_IMPORT_ATTENTION_H

#include "workloads/onnx/import/import.h"

enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_MASK,
    ATTENTION_PAST_KEY,
    ATTENTION_PAST_VALUE,
    ATTENTION_LENGTHS,
    ATTENTION_INPUTS
};

struct attention_draft {
    struct importer *im;
    struct draft *d;
    int in[ATTENTION_INPUTS];
    bool flat;                      /* q, k, v [B, S, heads * size], not [B, heads, S, size] */
    enum dtype dtype;               /* of q, k and the result */
    int64_t batch, heads, kv_heads; /* neighbouring heads of q share one of k and v */
    int64_t size, v_size;           /* of a head */
    int64_t queries, fresh, past;   /* keys that come with the call, and those before them */
    int64_t keys;                   /* fresh + past */
    bool causal;                    /* no key after the query's own */
    int64_t before, after;          /* how many keys on each side of it are seen; -1: all */
    double scale, softcap;          /* softcap 0: none */
    int64_t precision;              /* of the softmax, as ONNX numbers types; 0: dtype */
    int64_t shown;                  /* what output 3 holds */
    bool wanted[ATTENTION_OUTPUTS];
};

int attention_number(const struct attention_draft *a, double number); /* of type dtype */
/* Whether the mask, if there is one, fits the scores once it is as long as the keys. */
enum status attention_check_mask(const struct attention_draft *a, struct error *err);
/* What is added to the scores, NONE if nothing is; without `causal` that part is left out.
 * may_empty: a query may be left without keys. */
int attention_bias(const struct attention_draft *a, bool causal, bool *may_empty);

#endif
