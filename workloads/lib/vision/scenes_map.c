/* SPDX-License-Identifier: Apache-2.0
 * Mean average precision of what a detector found in scenes. */
#include <math.h>
#include <stdlib.h>

#include "workloads/lib/layers.h"
#include "workloads/lib/vision/scenes.h"

enum { ROW = 7, LABEL = 1, SCORE = 2, BOX = 3 }; /* numbers of a row of DetectionOutput */

struct precision_job {
    const float *rows, *objects;
    int64_t images, per_image; /* rows */
    const float **order;       /* rows of one class */
    bool *found;               /* objects */
};

static int by_score(const void *a, const void *b)
{
    const float *x = *(const float *const *)a, *y = *(const float *const *)b;
    if (x[SCORE] != y[SCORE])
        return x[SCORE] < y[SCORE] ? 1 : -1;
    return x < y ? -1 : x > y;
}

static float overlap(const float *a, const float *b)
{
    float width = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    float height = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    if (!(width > 0) || !(height > 0))
        return 0;
    float both = width * height;
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

/* Whether a row finds an object that no better row found. */
static bool finds(const struct precision_job *job, const float *row)
{
    int64_t image = (row - job->rows) / (job->per_image * ROW), best = -1;
    float largest = 0.5f;
    for (int64_t k = 0; k < SCENE_OBJECTS; k++) {
        int64_t at = image * SCENE_OBJECTS + k;
        const float *object = job->objects + at * SCENE_NUMBERS;
        float here = object[4] == row[LABEL] ? overlap(row + BOX, object) : 0;
        if (here >= largest) {
            largest = here;
            best = at;
        }
    }
    if (best < 0 || job->found[best])
        return false;
    job->found[best] = true;
    return true;
}

/* The area under the curve of precision over recall, each precision raised to the best one of any
 * larger recall. */
static double precision_of(const struct precision_job *job, float label, int64_t objects)
{
    int64_t count = 0, right = 0;
    double area = 0, best = 0;
    for (int64_t k = 0; k < job->images * job->per_image; k++)
        if (job->rows[k * ROW + LABEL] == label)
            job->order[count++] = job->rows + k * ROW;
    qsort(job->order, (size_t)count, sizeof(*job->order), by_score);
    for (int64_t k = 0; k < count; k++) {
        bool hit = finds(job, job->order[k]);
        right += hit;
        if (!hit)
            job->order[k] = NULL;
    }
    for (int64_t k = count - 1; k >= 0; k--) {
        double precision = (double)right / (double)(k + 1);
        best = precision > best ? precision : best;
        area += job->order[k] ? best : 0;
        right -= job->order[k] != NULL;
    }
    return area / (double)objects;
}

static double mean_precision(struct precision_job *job)
{
    double sum = 0, largest = 0;
    int64_t classes = 0, all = job->images * SCENE_OBJECTS;
    for (int64_t k = 0; k < all; k++)
        largest = fmax(largest, (double)job->objects[k * SCENE_NUMBERS + 4]);
    for (float label = 1; (double)label <= largest; label++) {
        int64_t objects = 0;
        for (int64_t k = 0; k < all; k++)
            objects += job->objects[k * SCENE_NUMBERS + 4] == label;
        if (objects == 0)
            continue;
        sum += precision_of(job, label, objects);
        classes++;
    }
    return classes ? sum / (double)classes : NAN;
}

static double map_of(const struct judged *judged)
{
    struct precision_job job = {.rows = judged->answers, .objects = judged->targets};
    job.images = judged->target_count / (SCENE_OBJECTS * SCENE_NUMBERS);
    if (job.images == 0 || judged->target_type != DTYPE_F32)
        return NAN;
    job.per_image = judged->answer_count / ROW / job.images;
    job.order = calloc((size_t)(job.images * job.per_image) + 1, sizeof(*job.order));
    job.found = calloc((size_t)(job.images * SCENE_OBJECTS), sizeof(*job.found));
    double map = job.order && job.found ? mean_precision(&job) : NAN;
    free(job.order);
    free(job.found);
    return map;
}

const struct quality quality_map = {.name = "mAP", .of = map_of};

int scene_rows(struct graph *g, int rows, const double size[2], bool y_first)
{
    static const int64_t x_order[] = {0, 0, 1, 2, 3, 4, 5}, y_order[] = {0, 0, 1, 3, 2, 5, 4};
    float scale[ROW] = {0, 1, 1};
    for (int k = 0; k < 4; k++)
        scale[BOX + k] = (float)(1 / size[k % 2 == 0]); /* x: width, y: height */
    rows = gather(g, rows, graph_const_i64(g, ROW, y_first ? y_order : x_order), 2);
    return mul(g, rows, graph_const(g, NULL, DTYPE_F32, shape_of(ROW), scale));
}
