/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/ssd.h"

#include <math.h>
#include <string.h>

#include "workloads/lib/losses.h"
#include "workloads/lib/vision/detector_loss.h"
#include "workloads/lib/vision/scenes.h"

/* Of a detector that does not learn. What decides how many boxes there are to suppress: with these
 * the background wins nearly everywhere, as in a trained detector, and some hundred boxes per class
 * pass the threshold. */
static const float background_bias = 9.0f;
static const double conf_spread = 2.0, loc_spread = 0.7; /* deviations of scores and offsets */

static const char *const offsets[] = {"repository", "centre", NULL};
const struct param ssd_offsets[] = {
    {"offsets", "repository", offsets,
     "centres of the priors: as the repository's script computes them, or of the cells"},
    {"thin", "1", thin_choices, "what all channels of the trunk are divided by"},
    {.name = NULL},
};

void ssd_set_offsets(struct ssd *net, const struct workload_config *config)
{
    bool centre = strcmp(config_text(config, "offsets"), "centre") == 0;
    if (centre)
        for (int k = 0; k < net->maps; k++)
            net->map[k].offset = 0.5;
}

static const struct shape *shape_at(const struct graph *g, int x)
{
    static const struct shape none = {.rank = 4, .dim = {1, 1, 1, 1}};
    return g->failed ? &none : &g->values[x].shape;
}

static int64_t priors_per_cell(const struct ssd_map *m)
{
    return 2 + 2 * m->ratios;
}

/* Zero; where nothing is learnt, but for the background's entry of each prior. */
static int conf_bias(struct graph *g, const char *name, int64_t out, int64_t classes)
{
    float *data = arena_array(&g->arena, (size_t)out, sizeof(*data));
    int bias = graph_param(g, name, DTYPE_F32, shape_of(out), (struct fill){.kind = FILL_CONST});
    if (data && !g->training)
        for (int64_t k = 0; k < out; k += classes)
            data[k] = background_bias;
    if (!g->failed)
        g->values[bias].data = data;
    return bias;
}

/* A convolution with `each` outputs per prior, as [N, H W priors, each]. */
static int head(struct graph *g, int x, const struct ssd_map *m, const char *part, int64_t each)
{
    const struct shape in = *shape_at(g, x);
    bool conf = each != 4;
    int64_t k = m->kernel, pad = k / 2, out = priors_per_cell(m) * each;
    const char *name = name_of(g, "%s_mbox_%s", m->name, part);
    /* Variance s^2 / fan in; features after a ReLU have a mean square near 1. Those that learn
     * begin with Xavier's, as published. */
    double wide = g->training ? 1 : conf ? conf_spread : loc_spread;
    double bound = wide * sqrt(3.0 / (double)(in.dim[1] * k * k));
    struct fill spread = {.kind = FILL_UNIFORM, .a = -bound, .b = bound};
    struct fill small = {.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05};
    int w = graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(out, in.dim[1], k, k),
                        spread);
    const char *bias = name_of(g, "%s.bias", name);
    int b = conf ? conf_bias(g, bias, out, each)
                 : graph_param(g, bias, DTYPE_F32, shape_of(out), small);
    x = graph_node(g, "Conv", name, INPUTS(x, w, b),
                   ATTRS(attr_ints_of("kernel_shape", k, k), attr_ints_of("strides", 1, 1),
                         attr_ints_of("pads", pad, pad, pad, pad)));
    x = transpose(g, x, 4, (int64_t[]){0, 2, 3, 1});
    return reshape(g, x, 3, (int64_t[]){in.dim[0], in.dim[2] * in.dim[3] * out / each, each});
}

static float *put_prior(float *to, const struct ssd *net, const double centre[2],
                        const double size[2])
{
    for (int k = 0; k < 2; k++) {
        to[k] = (float)(centre[k] / (double)net->image);
        to[k + 2] = (float)(size[k] / (double)net->image);
    }
    return to + 4;
}

static float *put_cell(float *to, const struct ssd *net, const struct ssd_map *m,
                       const double centre[2])
{
    double least = net->whole_sides ? floor(m->least) : m->least;
    double largest = net->whole_sides ? floor(m->largest) : m->largest,
           middle = sqrt(least * largest);
    to = put_prior(to, net, centre, (double[]){least, least});
    to = put_prior(to, net, centre, (double[]){middle, middle});
    for (int k = 0; k < m->ratios; k++) {
        double root = sqrt(net->ratio[k]);
        to = put_prior(to, net, centre, (double[]){least * root, least / root});
        to = put_prior(to, net, centre, (double[]){least / root, least * root});
    }
    return to;
}

/* [priors, 4]: centre x, y, width, height in parts of the image, cell by cell. */
static int priors(struct graph *g, const struct ssd *net, const int *features)
{
    int64_t count = 0;
    for (int k = 0; k < net->maps; k++) {
        const struct shape *s = shape_at(g, features[k]);
        count += s->dim[2] * s->dim[3] * priors_per_cell(&net->map[k]);
    }
    float *data = arena_array(&g->arena, (size_t)count * 4, sizeof(*data)), *to = data;
    if (data)
        for (int k = 0; k < net->maps; k++) {
            const struct ssd_map *m = &net->map[k];
            const struct shape *s = shape_at(g, features[k]);
            for (int64_t cell = 0; cell < s->dim[2] * s->dim[3]; cell++) {
                double column = (double)(cell % s->dim[3]), row = (double)(cell / s->dim[3]);
                to = put_cell(
                    to, net, m,
                    (double[]){(column + m->offset) * m->step, (row + m->offset) * m->step});
            }
        }
    return data ? graph_const(g, "priors", DTYPE_F32, shape_of(count, 4), data) : NONE;
}

/* What the convolutions say at every prior. */
struct said {
    int locations, logits, priors; /* [N, P, 4], [N, P, classes], [P, 4] */
};

static struct said say(struct graph *g, const struct ssd *net, const int *features)
{
    int loc[SSD_MAPS], conf[SSD_MAPS];
    for (int k = 0; k < net->maps; k++) {
        loc[k] = head(g, features[k], &net->map[k], "loc", 4);
        conf[k] = head(g, features[k], &net->map[k], "conf", net->classes);
    }
    struct said said;
    said.locations = concat(g, 1, net->maps, loc);
    said.logits = concat(g, 1, net->maps, conf);
    said.priors = priors(g, net, features);
    return said;
}

static void detect(struct graph *g, const struct ssd *net, const struct said *said)
{
    int found[2] = {NONE, NONE}, scores = softmax(g, said->logits, 2);
    graph_node_many(g, "DetectionOutput", "detection_out",
                    INPUTS(said->locations, scores, said->priors),
                    ATTRS(attr_int("top_k", net->top_k), attr_int("keep", 200),
                          attr_float("score_threshold", net->score_threshold),
                          attr_float("iou_threshold", 0.45)),
                    2, found);
    graph_rename(g, found[0], "detections");
    graph_rename(g, found[1], "detection_count");
    graph_output(g, found[0]);
    graph_output(g, found[1]);
}

/* ---- training ---- */

/* The answer of the heads, which follow `objects` in the graph. */
static struct said learn(struct graph *g, const struct ssd *net, const int *features)
{
    int64_t n = shape_at(g, features[0])->dim[0];
    int objects = scenes_objects(g, n, net->classes), target[2];
    int boxes = slice(g, objects, (struct range){.axis = 2, .start = 0, .stop = 4});
    int labels = slice(g, objects, (struct range){.axis = 2, .start = 4, .stop = SCENE_NUMBERS});
    labels = cast(g, reshape(g, labels, 2, (const int64_t[]){n, SCENE_OBJECTS}), DTYPE_I64);
    struct said said = say(g, net, features);
    graph_node_many(g, "MatchPriors", "match", INPUTS(boxes, labels, said.priors),
                    ATTRS(attr_float("threshold", 0.5)), 2, target);
    int positive = is_positive(g, target[0]);
    int matched = binary(g, "Max", sum_of(g, positive), graph_const_f32(g, 1));
    int class = sum_of_hard(g, class_losses(g, said.logits, target[0]), target[0], 3);
    int place = place_loss(g, said.locations, target[1], positive);
    int loss = binary(g, "Div", add(g, class, place), matched);
    graph_rename(g, loss, "loss");
    graph_output(g, loss);
    return said;
}

void ssd_end(struct graph *g, const struct workload_config *config, const struct ssd *net,
             const int *features)
{
    struct said said = config->loss ? learn(g, net, features) : say(g, net, features);
    if (!g->training)
        detect(g, net, &said);
}
