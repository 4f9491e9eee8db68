/* SPDX-License-Identifier: Apache-2.0
 *
 * A Conv node in oneDNN's terms, shared by the direct and the Winograd kernel. */
#ifndef ENGINE_KERNELS_ONEDNN_LIB_CONV_H
#define ENGINE_KERNELS_ONEDNN_LIB_CONV_H

#include "engine/kernels/onednn/lib/adapter.h"

struct conv {
    int spatial; /* 1 to 3 */
    bool has_bias;
    bool blind; /* some windows see nothing but padding */
    struct memory_layout src, dst, bias;
    struct memory_layout weights; /* as the node has them: [O, I, k] or [G, O / G, I, k] */
    struct memory_layout weights_any;
    const void *weights_data; /* NULL: they come with each launch */
    dnnl_dims_t stride, dilation, pad_begin, pad_end;
};

enum status conv_from_query(const struct kernel_query *q, struct plan *plan, struct conv *conv,
                            struct error *why);
/* Weights are in the layout that oneDNN likes best. */
struct operation conv_operation(const struct conv *conv, dnnl_alg_kind_t alg);
/* The posts of an implementation that can add a residual only to what its destination holds: one
 * tensor of the output's size. *residual: the input that must be copied there first, or NONE. */
enum status conv_posts_in_place(const struct kernel_query *q, struct plan *plan, int *residual,
                                struct error *why);
/* Weights and bias of the step, which moves. */
enum status conv_weights(const struct conv *conv, struct plan *plan, struct plan_step *step,
                         struct error *why);

#endif
