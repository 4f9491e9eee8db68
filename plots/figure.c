/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/figure.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "plots/palette.h"
#include "plots/text.h"

enum { LINE_PX = FIGURE_LINE_PX, MARGIN_PX = 3 };

const struct grid *figure_grid_if(const struct figure *figure, const char *block)
{
    for (int k = 0; k < figure->grid_count; k++)
        if (strcmp(figure->blocks[k], block) == 0)
            return &figure->grids[k];
    return NULL;
}

const struct grid *figure_grid(const struct figure *figure, const char *block)
{
    const struct grid *grid = figure_grid_if(figure, block);
    return grid ? grid : &figure->grids[0];
}

/* ---- data and variables ---- */

void figure_end(struct figure *figure)
{
    if (figure->block)
        fprintf(figure->commands, "%s_rows = %lld\n", figure->block, (long long)figure->rows);
    figure->block = NULL;
}

void figure_block(struct figure *figure, const char *name, const char *columns)
{
    figure_end(figure);
    fprintf(figure->data, "\n\n# %s\n%s\n", name, columns);
    figure->block = name;
    figure->rows = 0;
}

void figure_row(struct figure *figure, const char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(figure->data, format, args);
    va_end(args);
    fputc('\t', figure->data);
    text_field(figure->data, *text ? text : "-");
    fputc('\n', figure->data);
    figure->rows++;
}

void figure_number(struct figure *figure, const char *name, double value)
{
    fprintf(figure->commands, "%s = %.9g\n", name, value);
}

/* A step of 1, 2 or 5 times a power of ten that leaves so many pixels between two numbers. */
static double tick_step(const struct axis *axis, double frame_px, double apart_px)
{
    double least = fabs(axis->max - axis->min) * apart_px / frame_px;
    double power = pow(10, floor(log10(least)));
    return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

static void put_axis(struct figure *f, const struct axis *axis, char name, double frame_px)
{
    if (axis->log)
        fprintf(f->commands, "set logscale %c\n", name);
    else
        fprintf(f->commands, "set %ctics %.9g\n", name,
                tick_step(axis, frame_px, name == 'x' ? 62 : 34));
}

void figure_frame(struct figure *f)
{
    fprintf(f->commands,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            f->left / f->width, 1 - f->right / f->width, 1 - f->top / f->height,
            f->bottom / f->height);
    fprintf(f->commands, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", f->x.min, f->x.max,
            f->y.min, f->y.max);
    put_axis(f, &f->x, 'x', f->width - f->left - f->right);
    put_axis(f, &f->y, 'y', f->height - f->top - f->bottom);
}

/* ---- places ---- */

static double along(const struct axis *axis, double value)
{
    return axis->log ? log(value / axis->min) / log(axis->max / axis->min)
                     : (value - axis->min) / (axis->max - axis->min);
}

double figure_px_x(const struct figure *f, double value)
{
    return f->left + along(&f->x, value) * (f->width - f->left - f->right);
}

double figure_px_y(const struct figure *f, double value)
{
    return f->height - f->bottom - along(&f->y, value) * (f->height - f->top - f->bottom);
}

/* Widths of the letters from ' ' to '~' in hundredths of the font's size: in each case the wider of
 * DejaVu Sans and Liberation Sans (which is as wide as Arial and Helvetica). With one width for all
 * letters "gemm" ran into "rnn". */
static const unsigned char letter_widths[] = {
    32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 56, 102, 68, 69, 72, 77, 67, 61, 78, 75, 29, 50, 67, 56, 86, 75, 79,
    67, 79, 72, 67, 61, 73, 68, 99, 69,  67, 69, 39, 34, 39, 84, 56, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};

enum { OTHER_LETTER = 100 };

double figure_text_width(const char *text)
{
    int sum = 0;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte >= ' ' && byte <= '~')
            sum += letter_widths[byte - ' '];
        else if ((byte & 0xc0) != 0x80) /* the first byte of a letter */
            sum += OTHER_LETTER;
    }
    return FIGURE_FONT_PX * sum / 100.0;
}

struct short_text figure_row_name(const struct figure *f, const char *name)
{
    int letters = text_letters(name);
    struct short_text fit = text_fit(name, letters);
    while (letters > 1 && figure_text_width(fit.s) > 0.4 * f->width)
        fit = text_fit(name, --letters);
    return fit;
}

struct box figure_text_box(double x, double y, const char *text, double align)
{
    double width = figure_text_width(text);
    return (struct box){x - align * width, y - LINE_PX / 2.0, x + (1 - align) * width,
                        y + LINE_PX / 2.0};
}

bool figure_free(const struct figure *f, struct box box)
{
    if (box.x0 < f->left || box.x1 > f->width - f->right || box.y0 < f->top ||
        box.y1 > f->height - f->bottom)
        return false;
    for (int k = 0; k < f->taken_count; k++) {
        const struct box *other = &f->taken[k];
        if (box.x0 < other->x1 && other->x0 < box.x1 && box.y0 < other->y1 && other->y0 < box.y1)
            return false;
    }
    return true;
}

void figure_take(struct figure *f, struct box box)
{
    if (f->taken_count == FIGURE_BOXES_MAX)
        return;
    f->is_text[f->taken_count] = false;
    f->taken[f->taken_count++] =
        (struct box){box.x0 - MARGIN_PX, box.y0, box.x1 + MARGIN_PX, box.y1};
}

void figure_label_colour(struct figure *f, double x, double y, double align, const char *text,
                         unsigned rgb)
{
    static const char *const words[] = {"left", "center", "right"};
    fputs("set label ", f->commands);
    text_gnuplot(f->commands, text);
    fprintf(f->commands, " at screen %.5f,%.5f %s noenhanced front textcolor rgb '#%06x'\n",
            x / f->width, 1 - y / f->height, words[(int)lrint(align * 2)], rgb);
    figure_take(f, figure_text_box(x, y, text, align));
    if (f->taken_count)
        f->is_text[f->taken_count - 1] = true;
}

void figure_label(struct figure *f, double x, double y, double align, const char *text)
{
    figure_label_colour(f, x, y, align, text, 0);
}

void figure_y_title(struct figure *f, const char *text)
{
    fputs("set label ", f->commands);
    text_gnuplot(f->commands, text);
    fprintf(f->commands, " at screen %.5f,%.5f center rotate by 90 noenhanced\n", 14 / f->width,
            1 - (f->top + f->height - f->bottom) / 2 / f->height);
}

void figure_x_title(struct figure *f, const char *text)
{
    double x = (f->left + f->width - f->right) / 2, half = figure_text_width(text) / 2;
    x = fmin(x, f->width - half - 2);
    figure_label(f, x, f->height - f->below - LINE_PX / 2.0 - 2, 0.5, text);
}

void figure_line(struct figure *f, struct box line, const char *style)
{
    fprintf(f->commands, "set arrow from screen %.5f,%.5f to screen %.5f,%.5f nohead %s\n",
            line.x0 / f->width, 1 - line.y0 / f->height, line.x1 / f->width,
            1 - line.y1 / f->height, style);
}

static void legend_entry(struct figure *f, double x, double y, int index, const char *name)
{
    const struct swatch *swatch = palette_at(index);
    fprintf(f->commands, "set label '' at screen %.5f,%.5f point pt %d ps 1.2 lc rgb '#%06x'\n",
            x / f->width, 1 - y / f->height, swatch->marker, swatch->rgb);
    figure_label(f, x + 12, y, 0, name);
}

/* The height that it takes; draws unless it only measures. */
static double legend(struct figure *f, unsigned used, const char *(*name)(int index), bool draws)
{
    double left = 12, x = left, y = LINE_PX * 0.8;
    for (int k = 0; k < PALETTE_COUNT; k++) {
        if (!(used >> k & 1))
            continue;
        double width = figure_text_width(name(k)) + 34;
        if (x + width > f->width - 4 && x > left) {
            x = left;
            y += LINE_PX + 2;
        }
        if (draws)
            legend_entry(f, x, y, k, name(k));
        x += width;
    }
    return used ? y + LINE_PX : 0;
}

double figure_legend_height(struct figure *f, unsigned used, const char *(*name)(int index))
{
    return legend(f, used, name, false);
}

void figure_legend(struct figure *f, unsigned used, const char *(*name)(int index))
{
    legend(f, used, name, true);
}
