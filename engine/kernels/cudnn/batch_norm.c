/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNormalization that stands alone, with known statistics: a factor and a shift per channel.
 * (cuDNN's own operation knows training only.) */
#include <math.h>

#include "engine/kernels/cudnn/lib/state.h"

/* factor = scale / sqrt(variance + epsilon), shift = bias - mean factor; both in one array. */
static enum status factors(const struct kernel_query *q, struct work *work, int64_t channels,
                           const float **made, struct error *why)
{
    const float *input[5] = {NULL};
    for (int k = 1; k < 5; k++) {
        input[k] = query_fixed(q, k);
        if (!input[k] || q->in[k].dtype != DTYPE_F32)
            return REFUSE(why, "statistics that change from run to run, or are not f32");
    }
    *made = NULL;
    if (!work->packing)
        return STATUS_OK;
    float *table = work_temporary(work, 2 * (size_t)channels * sizeof(*table));
    double epsilon = cudnn_host->node_float(q->node, "epsilon", 1e-5);
    if (!table)
        return cudnn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    for (int64_t c = 0; c < channels; c++) {
        double factor = (double)input[1][c] / sqrt((double)input[4][c] + epsilon);
        table[c] = (float)factor;
        table[channels + c] = (float)((double)input[2][c] - (double)input[3][c] * factor);
    }
    *made = table;
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct tensor x, y;
    struct epilogue epilogue;
    const float *table;
    if (cudnn_host->node_int(q->node, "training_mode", 0))
        return REFUSE(why, "training");
    TRY(tensor_from(&q->in[0], &x, why));
    TRY(tensor_from(&q->out[0], &y, why));
    int64_t channels = x.dim[1];
    TRY(factors(q, work, channels, &table, why));
    struct desc row = {.dtype = DTYPE_F32, .shape = {.rank = 1, .dim = {channels}}, .stride = {1}};
    struct tensor vector;
    row.shape.rank = x.rank - 1;
    for (int k = 1; k < x.rank - 1; k++)
        row.shape.dim[k] = row.stride[k] = 1;
    TRY(tensor_operand(&row, x.rank, &vector, why));
    struct packing factor = {table, sizeof(float), 1, {channels}, {1}};
    struct packing shift = {table ? table + channels : NULL, sizeof(float), 1, {channels}, {1}};
    epilogue_from(q, NONE, &epilogue);
    struct opgraph *g = &work->graph;
    cudnn_desc scaled = opgraph_between(g, &y);
    opgraph_binary(g, CUDNN_POINTWISE_MUL, work_in(work, 0, &x),
                   work_packed(work, &vector, &factor), scaled);
    cudnn_desc moved = epilogue_start(&epilogue, work, &y);
    opgraph_binary(g, CUDNN_POINTWISE_ADD, scaled, work_packed(work, &vector, &shift), moved);
    return epilogue_append(q, &epilogue, work, moved, &y, why);
}

CUDNN_KERNEL(batch_norm, build, .ops = OPS("BatchNormalization"),
             .packs = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4);
