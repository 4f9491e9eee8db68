/* SPDX-License-Identifier: Apache-2.0
 * How many lines of text on pages were found. */
#include <math.h>
#include <stdlib.h>

#include "workloads/lib/vision/pages.h"

enum { CORNERS = 4, CUT_MAX = 2 * CORNERS, BOX = 5 };

struct polygon {
    int count;
    double at[CUT_MAX][2];
};

/* centre x and y, width, height; clockwise as seen, y pointing down. */
static struct polygon corners_of(const float *box, double sine, double cosine)
{
    static const double side[CORNERS][2] = {{-0.5, -0.5}, {0.5, -0.5}, {0.5, 0.5}, {-0.5, 0.5}};
    struct polygon p = {.count = CORNERS};
    for (int k = 0; k < CORNERS; k++) {
        double x = side[k][0] * (double)box[2], y = side[k][1] * (double)box[3];
        p.at[k][0] = (double)box[0] + cosine * x - sine * y;
        p.at[k][1] = (double)box[1] + sine * x + cosine * y;
    }
    return p;
}

static double area(const struct polygon *p)
{
    double twice = 0;
    for (int k = 0; k < p->count; k++) {
        const double *a = p->at[k], *b = p->at[(k + 1) % p->count];
        twice += a[0] * b[1] - a[1] * b[0];
    }
    return fabs(twice) / 2;
}

/* How far a point lies inside of the edge from a to b. */
static double inside(const double *a, const double *b, const double *point)
{
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]);
}

/* What is left of p inside of one edge (Sutherland and Hodgman, 1974). */
static struct polygon cut(const struct polygon *p, const double *a, const double *b)
{
    struct polygon left = {0};
    for (int k = 0; k < p->count; k++) {
        const double *from = p->at[k], *to = p->at[(k + 1) % p->count];
        double first = inside(a, b, from), second = inside(a, b, to);
        if (first >= 0 && left.count < CUT_MAX) {
            left.at[left.count][0] = from[0];
            left.at[left.count++][1] = from[1];
        }
        if ((first >= 0) == (second >= 0) || left.count == CUT_MAX)
            continue;
        double part = first / (first - second);
        for (int axis = 0; axis < 2; axis++)
            left.at[left.count][axis] = from[axis] + part * (to[axis] - from[axis]);
        left.count++;
    }
    return left;
}

/* Intersection over union. */
static double overlap(const float *box, const float *word)
{
    double angle = (double)box[4];
    struct polygon a = corners_of(box, sin(angle), cos(angle));
    struct polygon b = corners_of(word, (double)word[4], (double)word[5]), both = a;
    for (int k = 0; k < CORNERS; k++)
        both = cut(&both, b.at[k], b.at[(k + 1) % CORNERS]);
    double common = area(&both);
    return common / (area(&a) + area(&b) - common);
}

/* How many lines of one page are found. */
static int64_t found_on(const float *boxes, int64_t box_count, const float *words)
{
    int64_t found = 0;
    for (int w = 0; w < PAGE_WORDS; w++) {
        const float *word = words + (ptrdiff_t)w * PAGE_NUMBERS;
        bool hit = false;
        /* Two boxes cannot both overlap a line by half and not each other, and groups of segments
         * are apart; so the first one is as good as the best. */
        for (int64_t k = 0; k < box_count && word[2] > 0 && !hit; k++)
            hit = boxes[k * BOX + 2] > 0 && overlap(boxes + k * BOX, word) >= 0.5;
        found += hit;
    }
    return found;
}

static double f_measure(const struct judged *judged)
{
    enum { PAGE = PAGE_WORDS * PAGE_NUMBERS };
    const float *words = judged->targets;
    int64_t pages = judged->target_count / PAGE, found = 0, lines = 0, boxes = 0;
    if (pages == 0 || judged->target_type != DTYPE_F32)
        return NAN;
    int64_t per_page = judged->answer_count / BOX / pages;
    for (int64_t n = 0; n < pages; n++) {
        const float *answers = judged->answers + n * per_page * BOX;
        found += found_on(answers, per_page, words + n * PAGE);
        for (int64_t k = 0; k < per_page; k++)
            boxes += answers[k * BOX + 2] > 0;
        for (int w = 0; w < PAGE_WORDS; w++)
            lines += words[n * PAGE + w * PAGE_NUMBERS + 2] > 0;
    }
    return lines ? 2 * (double)found / (double)(lines + boxes) : NAN;
}

const struct quality quality_words = {.name = "F-measure", .of = f_measure};
