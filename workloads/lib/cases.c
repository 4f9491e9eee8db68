/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/cases.h"

#include "workloads/lib/layers.h"

int case_index(struct graph *g, const struct workload_config *config, const char *name, int count)
{
    int64_t wanted = config_int(config, name);
    if (wanted >= 1 && wanted <= count)
        return (int)wanted - 1;
    FAIL(&g->err, STATUS_FAILED, "%s is %lld; there are the cases 1 to %d", name, (long long)wanted,
         count);
    g->failed = true;
    return -1;
}

int case_input(struct graph *g, const char *name, struct shape shape)
{
    return graph_input(g, name, DTYPE_F32, shape,
                       (struct fill){.kind = FILL_NORMAL, .a = 0, .b = 1});
}

int case_images(struct graph *g, int64_t batch, int64_t side, int64_t channels)
{
    int x = case_input(g, "x", shape_of(batch, side, side, channels));
    return transpose(g, x, 4, (const int64_t[]){0, 3, 1, 2});
}

void case_images_output(struct graph *g, int y)
{
    int images = transpose(g, y, 4, (const int64_t[]){0, 2, 3, 1});
    graph_rename(g, images, "y");
    graph_output(g, images);
}
