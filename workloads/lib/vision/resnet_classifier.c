/* SPDX-License-Identifier: Apache-2.0
 *
 * v1 halves the image in the first 1x1 convolution of a stage, v1.5 in its 3x3. */
#include "workloads/lib/vision/resnet_classifier.h"

#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/classes.h"
#include "workloads/lib/vision/resnet.h"

static const char *const versions[] = {"1", "1.5", NULL};
const struct param resnet_params[] = {
    {"version", "1", versions, "where a stage halves the image: 1 in the 1x1, 1.5 in the 3x3"},
    CLASSES_PARAMS,
    {"thin", "1", thin_choices, "what all channels but the last layer's are divided by"},
    {.name = NULL},
};

int resnet_classifier(struct graph *g, const struct workload_config *config, const int blocks[4])
{
    int64_t size = config_int(config, "image");
    if (!at_least(g, "image", size, 3)) /* else the stem leaves less than a pooling needs */
        return NONE;
    struct resnet net = {.stride_in_3x3 = strcmp(config_text(config, "version"), "1.5") == 0,
                         .thin = config_int(config, "thin")};
    memcpy(net.blocks, blocks, sizeof(net.blocks));
    net.epsilon = net.stride_in_3x3 ? 1e-5 : 1e-4;
    int x = image_input(g, config->batch, size, size);
    x = resnet_trunk(g, x, &net);
    x = flatten(g, global_average_pool(g, x));
    return dense(g, x, "fc", config_int(config, "classes"));
}
