/* SPDX-License-Identifier: Apache-2.0
 *
 * Names beside markers. A name goes to the nearest free place beside its marker. Where points
 * crowd, names would be strewn over the picture on long lines: there a number stands for each,
 * which is narrow enough to stay near, and a legend has the names. Everything follows from the
 * points and their order alone. Checked by tests/unit/test_figure.c. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

/* A name further off than this is numbered. */
enum { NEAR_PX = 24, LEADER_FROM_PX = 14, DIRECTIONS = 24 };

#define TURN 6.283185307179586

struct place {
    double x, y, align;
    struct box box, leader;
    bool has_leader;
};

/* ---- geometry ---- */

static double cross(double ax, double ay, double bx, double by)
{
    return ax * by - ay * bx;
}

static bool lines_cross(const struct box *a, const struct box *b)
{
    double ax = a->x1 - a->x0, ay = a->y1 - a->y0, bx = b->x1 - b->x0, by = b->y1 - b->y0;
    double p = cross(ax, ay, b->x0 - a->x0, b->y0 - a->y0);
    double q = cross(ax, ay, b->x1 - a->x0, b->y1 - a->y0);
    double r = cross(bx, by, a->x0 - b->x0, a->y0 - b->y0);
    double s = cross(bx, by, a->x1 - b->x0, a->y1 - b->y0);
    return p * q < 0 && r * s < 0;
}

/* Liang and Barsky: is any part of the line inside the box? */
static bool line_meets_box(const struct box *line, const struct box *box)
{
    double dx = line->x1 - line->x0, dy = line->y1 - line->y0, from = 0, to = 1;
    double along[4] = {-dx, dx, -dy, dy};
    double distance[4] = {line->x0 - box->x0, box->x1 - line->x0, line->y0 - box->y0,
                          box->y1 - line->y0};
    for (int k = 0; k < 4; k++) {
        if (along[k] == 0 && distance[k] <= 0)
            return false;
        if (along[k] < 0)
            from = fmax(from, distance[k] / along[k]);
        else if (along[k] > 0)
            to = fmin(to, distance[k] / along[k]);
    }
    return from < to;
}

/* ---- one label ---- */

/* From the marker's edge to the nearest side of a label that stands apart. */
static void set_leader(struct place *place, double x, double y, double radius)
{
    const struct box *box = &place->box;
    double to_x = fmax(box->x0, fmin(x, box->x1)), to_y = fmax(box->y0 + 3, fmin(y, box->y1 - 3));
    double distance = hypot(to_x - x, to_y - y), step = radius / distance;
    place->has_leader = distance >= radius + LEADER_FROM_PX;
    place->leader = (struct box){x + (to_x - x) * step, y + (to_y - y) * step, to_x, to_y};
}

/* No line runs through a text, and lines keep apart. */
static bool is_clear(const struct figure *f, const struct place *place)
{
    for (int k = 0; k < f->leader_count; k++)
        if (line_meets_box(&f->leaders[k], &place->box) ||
            (place->has_leader && lines_cross(&f->leaders[k], &place->leader)))
            return false;
    if (place->has_leader)
        for (int k = 0; k < f->taken_count; k++)
            if (f->is_text[k] && line_meets_box(&place->leader, &f->taken[k]))
                return false;
    return true;
}

/* Right first, then left, above, below, and between; further off all round. */
static void turn_to(int direction, bool near, double *dx, double *dy)
{
    static const double turns[][2] = {{1, 0},      {-1, 0},    {0, -1},      {0, 1},
                                      {0.8, -0.7}, {0.8, 0.7}, {-0.8, -0.7}, {-0.8, 0.7}};
    enum { TURNS = sizeof(turns) / sizeof(turns[0]) };
    if (near) {
        *dx = turns[direction % TURNS][0];
        *dy = turns[direction % TURNS][1];
        return;
    }
    *dx = cos(direction * TURN / DIRECTIONS);
    *dy = -sin(direction * TURN / DIRECTIONS);
}

static bool find_place(const struct figure *f, const struct label_point *point, const char *text,
                       double distance_max_px, struct place *place)
{
    static const double steps[] = {5, 12, 22, 36, 54, 78, 110, 150, 200};
    enum { STEPS = sizeof(steps) / sizeof(steps[0]) };
    for (int k = 0; k < 2 * STEPS * DIRECTIONS; k++) { /* clear ones first, then any that is free */
        int step = k / DIRECTIONS % STEPS, direction = k % DIRECTIONS;
        bool near = steps[step] <= NEAR_PX, second = k >= STEPS * DIRECTIONS;
        double dx, dy, reach = point->radius + steps[step];
        if (steps[step] > distance_max_px || (near && direction >= 8))
            continue;
        turn_to(direction, near, &dx, &dy);
        place->align = dx > 0.1 ? 0 : dx < -0.1 ? 1 : 0.5;
        place->x = point->x + dx * reach;
        place->y = point->y + dy * (reach + FIGURE_LINE_PX / 3.0);
        place->box = figure_text_box(place->x, place->y, text, place->align);
        set_leader(place, point->x, point->y, point->radius);
        if (figure_free(f, place->box) && (second || is_clear(f, place)))
            return true;
    }
    return false;
}

static void take_place(struct figure *f, const struct place *place)
{
    figure_take(f, place->box);
    if (f->taken_count)
        f->is_text[f->taken_count - 1] = true;
    if (place->has_leader && f->leader_count < FIGURE_LEADERS_MAX)
        f->leaders[f->leader_count++] = place->leader;
}

static void draw_place(struct figure *f, const struct place *place, const char *text)
{
    figure_label(f, place->x, place->y, place->align, text);
    if (place->has_leader)
        figure_line(f, place->leader, "lc rgb '#808080' lw 0.8");
    if (place->has_leader && f->leader_count < FIGURE_LEADERS_MAX)
        f->leaders[f->leader_count++] = place->leader;
}

bool figure_label_beside(struct figure *f, double x, double y, double radius, const char *text)
{
    struct place place;
    struct label_point point = {x, y, radius, text, 0};
    if (!find_place(f, &point, text, INFINITY, &place))
        return false;
    draw_place(f, &place, text);
    return true;
}

/* ---- all labels ---- */

/* The steps of a workload are named "#12": a number needs no other number. */
static bool is_number(const struct label_point *point)
{
    return point->text[0] == '#';
}

/* Four points where one name has room. */
static bool is_in_crowd(const struct label_point *points, int count, int index)
{
    enum { NEIGHBOURS = 3 };
    int near = 0;
    for (int k = 0; k < count; k++)
        near += k != index && fabs(points[k].x - points[index].x) < 60 &&
                fabs(points[k].y - points[index].y) < FIGURE_LINE_PX;
    return near >= NEIGHBOURS;
}

static struct short_text text_of(const struct label_point *point)
{
    struct short_text text;
    if (point->number > 0)
        snprintf(text.s, sizeof(text.s), "%d", point->number);
    else
        snprintf(text.s, sizeof(text.s), "%s", point->text);
    return text;
}

/* Numbers are placed first: they have no alternative. Draws, or only tries; the names that have no
 * room near their points become numbers, and their count is returned. */
static int place_all(struct figure *f, struct label_point *points, int count, bool draws)
{
    int taken = f->taken_count, leaders = f->leader_count, crowded = 0;
    for (int k = 0; k < 2 * count; k++) {
        struct label_point *point = &points[k % count];
        struct short_text text = text_of(point);
        struct place place;
        bool second = k >= count, may_become_number = second && !is_number(point);
        if (point->number < 0 || (point->number == 0) != second)
            continue;
        if (!find_place(f, point, text.s, may_become_number ? NEAR_PX : INFINITY, &place)) {
            point->number = may_become_number ? 1 : -1;
            crowded += may_become_number;
        } else if (draws) {
            draw_place(f, &place, text.s);
        } else {
            take_place(f, &place);
        }
    }
    if (!draws) {
        f->taken_count = taken;
        f->leader_count = leaders;
    }
    return crowded;
}

/* Numbers in the order of the points, without gaps. */
static void number_all(struct label_point *points, int count)
{
    int number = 0;
    for (int k = 0; k < count; k++)
        if (points[k].number > 0)
            points[k].number = ++number;
}

void figure_label_points(struct figure *f, struct label_point *points, int count)
{
    for (int k = 0; k < count; k++)
        points[k].number = !is_number(&points[k]) && is_in_crowd(points, count, k);
    do
        number_all(points, count);
    while (place_all(f, points, count, false));
    number_all(points, count); /* those that found no room have left */
    (void)place_all(f, points, count, true);
    for (int k = 0; k < count; k++)
        f->unnamed += points[k].number < 0;
}

/* ---- the legend ---- */

double figure_number_legend(struct figure *f, const struct label_point *points, int count,
                            bool draws)
{
    double widest = 0, left = 12;
    int entries = 0, at = 0;
    for (int k = 0; k < count; k++)
        if (points[k].number > 0) {
            widest = fmax(widest, figure_text_width(points[k].text));
            entries++;
        }
    if (!entries)
        return 0;
    double number_px = figure_text_width("00") + 6, column_px = number_px + widest + 18;
    int columns = (int)fmax(1, floor((f->width - left) / column_px));
    int lines = (entries + columns - 1) / columns;
    double height = lines * FIGURE_LINE_PX + 8.0;
    if (draws)
        for (int k = 0; k < count; k++) {
            char number[16];
            if (points[k].number <= 0)
                continue;
            double x = left + at / lines * column_px; /* down the columns */
            double y = f->height - height + (at % lines + 0.5) * FIGURE_LINE_PX + 4;
            snprintf(number, sizeof(number), "%d", points[k].number);
            figure_label(f, x + number_px - 6, y, 1, number);
            figure_label(f, x + number_px, y, 0, points[k].text);
            at++;
        }
    return height;
}
