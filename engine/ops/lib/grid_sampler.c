/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/grid_sampler.h"

#include <string.h>

static int find(const char *word, const char *const *words, int count)
{
    for (int k = 0; k < count; k++)
        if (strcmp(words[k], word) == 0)
            return k;
    return -1;
}

enum status grid_sampler_of(const struct node *node, const struct shape *x, struct grid_sampler *s,
                            struct error *err)
{
    /* The second three: names of opset 20. */
    static const char *const modes[] = {"nearest", "bilinear", "bicubic",
                                        "nearest", "linear",   "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    int mode = find(node_string(node, "mode", "bilinear"), modes, ARRAY_COUNT(modes));
    int padding = find(node_string(node, "padding_mode", "zeros"), paddings, 3);
    if (mode < 0 || padding < 0)
        return UNSUPPORTED(err, "mode \"%s\" with padding \"%s\" of GridSample",
                           node_string(node, "mode", ""), node_string(node, "padding_mode", ""));
    *s = (struct grid_sampler){.sampling = (enum grid_sampling)(mode % 3),
                               .padding = (enum grid_padding)padding,
                               .align = node_int(node, "align_corners", 0) != 0,
                               .height = x->dim[2],
                               .width = x->dim[3]};
    return STATUS_OK;
}
