/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic networks after arXiv 1812.00886, as AI Matrix has them: instead of many applications
 * one network that costs what they cost. form=made searches a network with the wanted arithmetic
 * intensity, footprint and mix of kernels, and says how near it came (`ridge graph`);
 * form=published is the synNet of the repository, form=published3c its synNet-3c. */
#include <string.h>

#include "workloads/lib/layers.h"
#include "workloads/lib/limits.h"
#include "workloads/lib/synthesis.h"
#include "workloads/workload.h"

enum { CLASSES = 1000, PUBLISHED_IMAGE = 224 };

static const char *const forms[] = {"made", "published", "published3c", NULL};
static const struct param params[] = {
    {"form", "made", forms, "a network made for what follows, or AI Matrix's synNet or synNet-3c"},
    {"intensity", "60", NULL, "FLOP per byte of the footprint"},
    {"footprint", "64", NULL, "MiB of weights, and of each activation once"},
    {"k5", "20", NULL, "share of 5x5 kernels in the multiply-adds, relative to k3 and k1"},
    {"k3", "60", NULL, "share of 3x3 kernels"},
    {"k1", "20", NULL, "share of 1x1 kernels"},
    {"image", "224", NULL, "height and width of the image"},
    {.name = NULL},
};

struct stage {
    int channels, kernel; /* POOL: 0 */
    int stride;
};
#define POOL                                                                                       \
    {                                                                                              \
        0, 0, 0                                                                                    \
    }

static const struct stage published[] = {
    {42, 5, 1},  {40, 3, 1},  {48, 3, 1},  POOL,        {4, 5, 1},   {93, 5, 1},  {2, 5, 1},
    {52, 5, 1},  {46, 5, 1},  {54, 5, 1},  {2, 5, 1},   {22, 5, 1},  {2, 3, 1},   {46, 3, 1},
    {206, 3, 1}, POOL,        {23, 5, 1},  {273, 3, 1}, {25, 3, 1},  {299, 3, 1}, {449, 3, 1},
    {49, 3, 1},  {406, 3, 1}, {12, 3, 1},  {48, 3, 1},  {209, 3, 1}, {39, 3, 1},  {309, 3, 1},
    POOL,        {192, 5, 1}, {90, 5, 1},  {88, 5, 1},  {663, 5, 1}, {23, 3, 1},  {139, 3, 1},
    {91, 3, 1},  {580, 3, 1}, {310, 3, 1}, {188, 3, 1}, {55, 3, 1},  {252, 3, 1}, {25, 3, 1},
    {49, 3, 1},  {862, 3, 1}, POOL,        {147, 5, 1}, {177, 5, 1}, {82, 5, 1},  {517, 4, 1},
    {307, 3, 1}, {182, 3, 1}, {367, 3, 1}, {131, 3, 1}, {291, 3, 1}, {456, 2, 1}, {345, 1, 1},
    POOL,        {150, 5, 1}, {298, 5, 1}, {48, 4, 1},  {48, 4, 1},  {48, 3, 1},  {48, 3, 1},
    {48, 2, 1},  {48, 2, 1},  {40, 1, 1},  {43, 1, 1},  POOL,
};

/* synNet-3c: three chains on the image; the second and third meet at half its size, and the first
 * joins them at a quarter. */
static const struct stage chain_a[] = {{512, 11, 4}}, chain_b[] = {{813, 7, 2}};
static const struct stage chain_c[] = {{2, 3, 1}, {79, 3, 1}, POOL};
static const struct stage chain_bc[] = {{25, 3, 1}, {91, 3, 1}, POOL};
static const struct stage chain_abc[] = {
    {232, 3, 1}, {76, 3, 1},  {223, 3, 1}, {9, 3, 1},   {201, 1, 1}, POOL,        {27, 5, 1},
    {418, 5, 1}, {457, 5, 1}, {18, 5, 1},  {24, 3, 1},  {585, 3, 1}, {96, 3, 1},  {150, 3, 1},
    {135, 3, 1}, {859, 1, 1}, {30, 1, 1},  {219, 1, 1}, {44, 1, 1},  {410, 1, 1}, {180, 1, 1},
    {195, 1, 1}, {533, 1, 1}, POOL,        {152, 5, 1}, {243, 5, 1}, {77, 5, 1},  {41, 3, 1},
    {681, 3, 1}, {147, 3, 1}, {14, 3, 1},  {592, 3, 1}, {111, 3, 1}, {89, 3, 1},  {47, 3, 1},
    {96, 3, 1},  {193, 3, 1}, {734, 3, 1}, {409, 3, 1}, {77, 3, 1},  {135, 1, 1}, {169, 1, 1},
    {447, 1, 1}, {65, 1, 1},  {330, 1, 1}, {110, 1, 1}, {120, 1, 1}, {328, 1, 1}, {392, 1, 1},
    {185, 1, 1}, {108, 1, 1}, {204, 1, 1}, {159, 1, 1}, {226, 1, 1}, {560, 1, 1}, {580, 1, 1},
    {91, 1, 1},  {17, 1, 1},  {824, 1, 1}, {295, 1, 1}, {44, 1, 1},  {192, 1, 1}, POOL,
    {394, 3, 1}, {178, 3, 1}, {79, 1, 1},  {280, 1, 1}, {458, 1, 1}, {137, 1, 1}, {756, 1, 1},
    {263, 1, 1}, {880, 1, 1}, {59, 1, 1},  {902, 1, 1}, {68, 1, 1},
};

static int layer(struct graph *g, int x, int number, struct stage s)
{
    x = conv2d(g, x, .name = name_of(g, "conv%d", number), .out = s.channels, .kernel = s.kernel,
               .stride = s.stride, .same = true);
    return relu(g, batch_norm(g, x, name_of(g, "bn%d", number), 1e-4, 1));
}

static int halve(struct graph *g, int x)
{
    return max_pool(g, x, (struct window2d){.kernel = 2, .stride = 2});
}

static int chain(struct graph *g, int x, int count, const struct stage *stages, int *number)
{
    for (int k = 0; k < count; k++)
        x = stages[k].channels ? layer(g, x, (*number)++, stages[k]) : halve(g, x);
    return x;
}
#define CHAIN(g, x, stages, number) chain((g), (x), ARRAY_COUNT(stages), (stages), (number))

static int build_published(struct graph *g, int x)
{
    int number = 0;
    return flatten(g, CHAIN(g, x, published, &number));
}

static int build_three_chains(struct graph *g, int x)
{
    int number = 0, a = CHAIN(g, x, chain_a, &number), b = CHAIN(g, x, chain_b, &number);
    int bc[] = {b, CHAIN(g, x, chain_c, &number)};
    x = CHAIN(g, concat(g, 1, 2, bc), chain_bc, &number);
    int abc[] = {x, a};
    return flatten(g, CHAIN(g, concat(g, 1, 2, abc), chain_abc, &number));
}

static void describe(struct graph *g, const struct synthesis_statistics *want,
                     const struct synthesis_statistics *got)
{
    g->note = name_of(g,
                      "wanted %.4g FLOP/byte, %.4g MiB, 5x5:3x3:1x1 %.1f:%.1f:%.1f; "
                      "made %.4g FLOP/byte, %.4g MiB, %.1f:%.1f:%.1f",
                      want->intensity, want->footprint / 0x1p20, 100 * want->shares[0],
                      100 * want->shares[1], 100 * want->shares[2], got->intensity,
                      got->footprint / 0x1p20, 100 * got->shares[0], 100 * got->shares[1],
                      100 * got->shares[2]);
}

static int build_made(struct graph *g, const struct workload_config *config, int x, int64_t image)
{
    static const char *const shares[SYNTHESIS_KERNELS] = {"k5", "k3", "k1"};
    struct synthesis_frame frame = {config->batch, image, CLASSES};
    struct synthesis_statistics want, got;
    struct synthesis_net net = {{0}};
    double sum = 0;
    want.intensity = (double)config_int(config, "intensity");
    want.footprint = (double)config_int(config, "footprint") * 0x1p20;
    for (int k = 0; k < SYNTHESIS_KERNELS; k++)
        sum += want.shares[k] = (double)config_int(config, shares[k]);
    for (int k = 0; k < SYNTHESIS_KERNELS; k++)
        want.shares[k] /= sum;
    synthesis_search(&frame, &want, &net);
    synthesis_measure(&net, &frame, &got);
    describe(g, &want, &got);
    int of_group = SYNTHESIS_KERNELS * SYNTHESIS_DEPTH;
    for (int gene = 0; gene < SYNTHESIS_GENES; gene++) {
        struct stage s = {net.channels[gene],
                          synthesis_kernels[gene / SYNTHESIS_DEPTH % SYNTHESIS_KERNELS], 1};
        x = s.channels ? layer(g, x, gene, s) : x;
        if ((gene + 1) % of_group == 0 && gene + 1 < SYNTHESIS_GENES)
            x = halve(g, x);
    }
    return flatten(g, global_average_pool(g, x));
}

static void build(struct graph *g, const struct workload_config *config)
{
    const char *form = config_text(config, "form");
    bool made = strcmp(form, "made") == 0;
    int64_t image = made ? config_int(config, "image") : PUBLISHED_IMAGE;
    static const char *const of_made[] = {"intensity", "footprint", "k5", "k3",
                                          "k1",        "image",     NULL};
    if (!at_least(g, "image", image, 1 << (SYNTHESIS_GROUPS - 1)) || /* is halved that often */
        (!made && !unset_beside(g, config, "form", of_made)))
        return;
    int x = graph_input(g, "image", DTYPE_F32, shape_of(config->batch, 3, image, image),
                        (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.5});
    x = made                             ? build_made(g, config, x, image)
        : strcmp(form, "published") == 0 ? build_published(g, x)
                                         : build_three_chains(g, x);
    x = dense(g, x, "fc", CLASSES);
    graph_rename(g, x, "logits");
    graph_output(g, x);
}

REGISTER(workload, synnet) = {
    .name = "synnet",
    .domain = "synthetic",
    .task = "synthetic benchmark",
    .summary =
        "a network made to have a wanted intensity, footprint and mix, or AI Matrix's synNet",
    .source = "arXiv 1812.00886; AI Matrix synNet",
    .params = params,
    .batch = 1,
    .build = build,
};
