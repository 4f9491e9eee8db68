/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/onednn/lib/layout.h"

#include <string.h>

#if DNNL_VERSION_MAJOR < 3

static layout_handle handle_of(struct layouts *layouts, dnnl_data_type_t type, int rank,
                               const dnnl_dims_t dims, const int64_t *strides)
{
    dnnl_memory_desc_t md;
    (void)layouts;
    dnnl_status_t status =
        strides ? dnnl_memory_desc_init_by_strides(&md, rank, dims, type, strides)
                : dnnl_memory_desc_init_by_tag(&md, rank, dims, type, dnnl_format_tag_any);
    if (status != dnnl_success)
        memset(&md, 0, sizeof(md));
    return md;
}

static int rank_of(const layout_handle *handle)
{
    return handle->ndims;
}

struct memory_layout layout_known(layout_pointer md)
{
    struct memory_layout layout = {0};
    if (!md)
        return layout;
    layout.rank = md->ndims;
    layout.type = md->data_type;
    memcpy(layout.dims, md->dims, sizeof(layout.dims));
    layout.handle = *md;
    return layout;
}

void layouts_free(struct layouts *layouts)
{
    (void)layouts;
}

layout_pointer layout_md(const struct memory_layout *layout)
{
    return layout ? &layout->handle : NULL;
}

dnnl_status_t post_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, alg, alpha, beta);
}

dnnl_status_t post_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f);
}

dnnl_alg_kind_t post_alg(const_dnnl_post_ops_t ops, int place)
{
    float scale, alpha, beta;
    dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
    dnnl_post_ops_get_params_eltwise(ops, place, &scale, &alg, &alpha, &beta);
    return alg;
}

#else

static layout_handle handle_of(struct layouts *layouts, dnnl_data_type_t type, int rank,
                               const dnnl_dims_t dims, const int64_t *strides)
{
    if (layouts->count == LAYOUTS)
        return NULL;
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status =
        strides ? dnnl_memory_desc_create_with_strides(&md, rank, dims, type, strides)
                : dnnl_memory_desc_create_with_tag(&md, rank, dims, type, dnnl_format_tag_any);
    if (status != dnnl_success)
        return NULL;
    layouts->made[layouts->count++] = md;
    return md;
}

static int rank_of(const layout_handle *handle)
{
    int rank = 0;
    if (*handle)
        dnnl_memory_desc_query(*handle, dnnl_query_ndims_s32, &rank);
    return rank;
}

struct memory_layout layout_known(layout_pointer md)
{
    struct memory_layout layout = {.handle = md, .rank = rank_of(&md)};
    const dnnl_dims_t *dims = NULL;
    if (!md)
        return layout;
    dnnl_memory_desc_query(md, dnnl_query_data_type, &layout.type);
    if (dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&dims) == dnnl_success && dims)
        memcpy(layout.dims, *dims, (size_t)layout.rank * sizeof(layout.dims[0]));
    return layout;
}

void layouts_free(struct layouts *layouts)
{
    for (int k = 0; k < layouts->count; k++)
        dnnl_memory_desc_destroy(layouts->made[k]);
    layouts->count = 0;
}

layout_pointer layout_md(const struct memory_layout *layout)
{
    return layout ? layout->handle : NULL;
}

dnnl_status_t post_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, alg, alpha, beta);
}

dnnl_status_t post_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

dnnl_alg_kind_t post_alg(const_dnnl_post_ops_t ops, int place)
{
    float alpha, beta;
    dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
    dnnl_post_ops_get_params_eltwise(ops, place, &alg, &alpha, &beta);
    return alg;
}

#endif

struct memory_layout layout_of(struct layouts *layouts, dnnl_data_type_t type, int rank,
                               const int64_t *dims, const int64_t *strides)
{
    struct memory_layout layout = {.type = type};
    dnnl_dims_t stride = {0};
    memcpy(layout.dims, dims, (size_t)rank * sizeof(*dims));
    if (strides)
        memcpy(stride, strides, (size_t)rank * sizeof(*strides));
    layout.handle = handle_of(layouts, type, rank, layout.dims, strides ? stride : NULL);
    layout.rank = rank_of(&layout.handle);
    return layout;
}

size_t layout_size(const struct memory_layout *layout)
{
    return layout->rank ? dnnl_memory_desc_get_size(layout_md(layout)) : 0;
}

bool layout_equal(const struct memory_layout *a, const struct memory_layout *b)
{
    return a->rank && b->rank && dnnl_memory_desc_equal(layout_md(a), layout_md(b));
}
