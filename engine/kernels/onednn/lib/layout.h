/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tensor lies in memory, in oneDNN's terms: a descriptor that is a struct in version 2 and an
 * object to be freed in version 3, and the sizes that kernels read back. The other calls whose
 * parameters differ between the two versions are here as well; those that describe what a primitive
 * computes are in operation.c. */
#ifndef ENGINE_KERNELS_ONEDNN_LIB_LAYOUT_H
#define ENGINE_KERNELS_ONEDNN_LIB_LAYOUT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

#if DNNL_VERSION_MAJOR < 3
typedef dnnl_memory_desc_t layout_handle;
typedef const dnnl_memory_desc_t *layout_pointer;
#else
typedef const_dnnl_memory_desc_t layout_handle;
typedef const_dnnl_memory_desc_t layout_pointer;
#endif

struct memory_layout {
    int rank; /* 0: oneDNN has no such descriptor, and no primitive takes it */
    dnnl_dims_t dims;
    dnnl_data_type_t type;
    layout_handle handle;
};

/* The descriptors of a plan that are freed with it. */
enum { LAYOUTS = 64 };

struct layouts {
    int count;
    dnnl_memory_desc_t made[DNNL_VERSION_MAJOR < 3 ? 1 : LAYOUTS];
};

/* strides NULL: whatever the implementation likes best. */
struct memory_layout layout_of(struct layouts *layouts, dnnl_data_type_t type, int rank,
                               const int64_t *dims, const int64_t *strides);
struct memory_layout
layout_known(layout_pointer md); /* of a primitive, which owns it; NULL: none */
void layouts_free(struct layouts *layouts);

layout_pointer layout_md(const struct memory_layout *layout); /* NULL of NULL */
size_t layout_size(const struct memory_layout *layout);
bool layout_equal(const struct memory_layout *a, const struct memory_layout *b);

/* ---- post-ops ---- */

dnnl_status_t post_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha,
                                  float beta);
dnnl_status_t post_append_sum(dnnl_post_ops_t ops); /* with what the destination holds */
/* The function of a post-op that is one. */
dnnl_alg_kind_t post_alg(const_dnnl_post_ops_t ops, int place);

#endif
