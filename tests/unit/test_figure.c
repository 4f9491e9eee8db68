/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plots and the page are made of: text for people, labels that keep apart, pictures that
 * become part of a page. The page itself is tested by tests/cli/report.sh. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/numbers/random.h"
#include "plots/figure.h"
#include "plots/palette.h"
#include "plots/plot.h"
#include "plots/svg.h"
#include "plots/text.h"
#include "tests/lib/unit.h"

TEST(numbers_have_three_digits_and_a_unit)
{
    assert_string_equal(text_time(0.0123456).s, "12.3 ms");
    assert_string_equal(text_time(1).s, "1.00 s");
    assert_string_equal(text_time(0.9996).s, "1.00 s");
    assert_string_equal(text_time(999.6e-6).s, "1.00 ms");
    assert_string_equal(text_time(5e-9).s, "5.00 ns");
    assert_string_equal(text_time(0).s, "0 s");
    assert_string_equal(text_scaled(152.04e9, "FLOP/s").s, "152 GFLOP/s");
    assert_string_equal(text_scaled(999.7e6, "B/s").s, "1.00 GB/s");
    assert_string_equal(text_scaled(2.15, "/s").s, "2.15 /s");
    assert_string_equal(text_bytes(1310720).s, "1.25 MiB");
    assert_string_equal(text_bytes(8).s, "8 B");
    assert_string_equal(text_bytes(8.5).s, "8.50 B");
    assert_string_equal(text_percent(0.0041).s, "0.4 %");
    assert_string_equal(text_percent(0.0004).s, "0.04 %");
    assert_string_equal(text_percent(1).s, "100 %");
    assert_string_equal(text_time(NAN).s, "\xe2\x80\x93");
    assert_string_equal(text_percent(INFINITY).s, "\xe2\x80\x93");
}

TEST(long_names_end_in_an_ellipsis)
{
    assert_string_equal(text_fit("resnet50", 8).s, "resnet50");
    assert_string_equal(text_fit("resnet50", 7).s, "resnet\xe2\x80\xa6");
    assert_string_equal(text_fit("n\xc3\xa9t\xc3\xa9s", 5).s, "n\xc3\xa9t\xc3\xa9s");
    assert_string_equal(text_fit("n\xc3\xa9t\xc3\xa9s", 4).s, "n\xc3\xa9t\xe2\x80\xa6");
    char long_name[500];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_true(text_letters(text_fit(long_name, 1000).s) <= 60);
    for (size_t k = 0; k + 2 < sizeof(long_name) - 1; k += 3) /* three bytes a letter */
        memcpy(long_name + k, "\xe2\x82\xac", 3);
    assert_true(text_letters(text_fit(long_name, 1000).s) <= 60);
}

/* A page with half a letter in it is no UTF-8, and its pictures are no XML. */
TEST(long_names_end_with_a_whole_letter)
{
    char name[3 * 21 + 1] = "xxx";
    for (int k = 1; k < 21; k++)
        memcpy(name + 3 * k, "\xe5\x8d\xb7", 4);
    for (int before = 0; before < 3; before++) {
        struct short_text fit = text_fit(name + before, 30);
        int length = 0;
        for (const char *at = fit.s; *at; at += length)
            assert_int_not_equal(length = utf8_length(at), 0);
        assert_int_equal(length, 3);
    }
}

typedef void put_text(FILE *stream, const char *text);

static void writes(put_text *put, const char *text, const char *expected)
{
    char *got = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&got, &size);
    put(stream, text);
    fclose(stream);
    assert_string_equal(got, expected);
    free(got);
}

TEST(text_cannot_leave_its_place)
{
    writes(text_html, "<a href=\"x\">'&</a>\x01\x1b",
           "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&lt;/a&gt;  ");
    writes(text_gnuplot, "it's `rm` \"x\"\n@y", "'it''s `rm` \"x\" @y'");
    writes(text_field, "a\tb\"c\"\nd", "a b'c' d");
}

/* Blocks of the same family have the same colour, whatever the order; most operators have one. */
TEST(kinds_have_families)
{
    assert_string_equal(palette_group(palette_of_kind("Conv")), "convolution");
    assert_int_equal(palette_of_kind("ConvInteger"), palette_of_kind("Conv"));
    assert_string_equal(palette_group(palette_of_kind("MatMul")), "matrix product");
    assert_int_equal(palette_of_kind("Gemm"), palette_of_kind("MatMul"));
    assert_string_equal(palette_group(palette_of_kind("ReduceMax")), "pooling, reduction");
    assert_string_equal(palette_group(palette_of_kind("NonMaxSuppression")), "other");
    assert_string_equal(palette_group(palette_of_kind("")), "other");
    assert_int_not_equal(palette_of_domain("vision"), palette_of_domain("language"));
}

static void figure_begin(struct figure *f, char **text, size_t *size)
{
    *f = (struct figure){
        .width = 860, .height = 520, .left = 74, .right = 16, .top = 20, .bottom = 54};
    f->commands = open_memstream(text, size);
    assert_non_null(f->commands);
}

static bool apart(const struct box *a, const struct box *b)
{
    return a->x1 <= b->x0 || b->x1 <= a->x0 || a->y1 <= b->y0 || b->y1 <= a->y0;
}

/* Every label keeps clear of all others and of all markers, and lies inside the frame. */
static void check_boxes(const struct figure *f)
{
    for (int a = 0; a < f->taken_count; a++) {
        if (!f->is_text[a])
            continue;
        assert_true(f->taken[a].x0 >= f->left - 4 && f->taken[a].x1 <= f->width - f->right + 4);
        assert_true(f->taken[a].y0 >= f->top && f->taken[a].y1 <= f->height - f->bottom);
        for (int b = 0; b < f->taken_count; b++) { /* less the margin beside each */
            struct box box = {f->taken[b].x0 + 3, f->taken[b].y0, f->taken[b].x1 - 3,
                              f->taken[b].y1};
            if (a != b)
                assert_true(apart(&f->taken[a], &box));
        }
    }
}

/* Crowds of points: whatever is placed keeps clear of all labels and of all other markers. */
TEST(labels_keep_apart)
{
    int placed = 0;
    for (int crowd = 0; crowd < 50; crowd++) {
        struct figure f;
        char *text = NULL;
        size_t size = 0;
        double spread = 20 + 8 * crowd;
        figure_begin(&f, &text, &size);
        for (int k = 0; k < 17; k++) {
            double x = 400 + spread * (random_uniform((uint64_t)crowd, (uint64_t)k) - 0.5);
            double y = 250 + spread * (random_uniform((uint64_t)crowd + 1000, (uint64_t)k) - 0.5);
            placed += figure_label_beside(&f, x, y, 6, "resnet50 b32");
        }
        check_boxes(&f);
        fclose(f.commands);
        free(text);
    }
    assert_true(placed > 50 * 15);
}

enum { CROWD = 34 };

static const char *const crowd_names[] = {"gemm",
                                          "rnn",
                                          "mmmmmmmmmm",
                                          "conv:case=57",
                                          "resnet50:version=1.5 b32",
                                          "\xe2\x82\xac\xe2\x82\xac"};

/* So many points over so many pixels; what was written to the plot is the caller's. */
static char *draw_crowd(struct figure *f, struct label_point *points, int seed, double spread)
{
    char *text = NULL;
    size_t size = 0;
    figure_begin(f, &text, &size);
    for (int k = 0; k < CROWD; k++) {
        uint64_t stream = 2 * (uint64_t)seed;
        double x = 420 + spread * (random_uniform(stream, (uint64_t)k) - 0.5);
        double y = 240 + 0.6 * spread * (random_uniform(stream + 1, (uint64_t)k) - 0.5);
        points[k] =
            (struct label_point){.x = x, .y = y, .radius = 3 + k % 4, .text = crowd_names[k % 6]};
        figure_take(f, (struct box){x - 3, y - 3, x + 3, y + 3});
    }
    figure_label_points(f, points, CROWD);
    fclose(f->commands);
    return text;
}

/* 34 points on top of each other, and spread wider and wider: each has its name or a number, no
 * two labels meet, and the numbers are 1, 2, 3 ... in the order of the points. */
TEST(a_crowd_is_numbered)
{
    struct label_point points[CROWD];
    for (int seed = 0; seed < 40; seed++) {
        struct figure f;
        free(draw_crowd(&f, points, seed, 20.0 * seed));
        int number = 0, labels = 0;
        check_boxes(&f);
        for (int k = 0; k < f.taken_count; k++)
            labels += f.is_text[k];
        for (int k = 0; k < CROWD; k++) {
            assert_true(points[k].number >= 0); /* -1: there was no room */
            if (points[k].number > 0)
                assert_int_equal(points[k].number, ++number);
        }
        assert_int_equal(labels, CROWD);
        assert_int_equal(f.unnamed, 0);
        assert_true(seed > 1 || number == CROWD);
    }
}

TEST(the_same_points_get_the_same_places)
{
    struct figure f;
    struct label_point points[CROWD];
    char *first = draw_crowd(&f, points, 7, 60), *second = draw_crowd(&f, points, 7, 60);
    assert_string_equal(first, second);
    free(first);
    free(second);
}

/* "gemm" and "rnn" side by side were printed as "gemmrnn": all letters counted as equally wide. */
TEST(wide_letters_take_their_width)
{
    struct figure f;
    char *text = NULL;
    size_t size = 0;
    assert_true(figure_text_width("gemm") > 2 * figure_text_width("iiii"));
    /* 38.6 px in DejaVu Sans of 13 px, which is what a browser without Arial takes. */
    assert_true(figure_text_width("gemm") > 41 && figure_text_width("gemm") < 43);
    figure_begin(&f, &text, &size);
    double gap = 5 + 2 + figure_text_width("rnn");
    assert_true(figure_label_beside(&f, 300, 200, 2, "gemm"));
    /* Room for its name to the left only with the width that all letters once had. */
    assert_true(figure_label_beside(&f, 300 + 7 + 32 + gap + 4, 200, 2, "rnn"));
    check_boxes(&f);
    fclose(f.commands);
    free(text);
}

/* The legend lies under the frame, in columns as wide as the widest name, inside the canvas. */
TEST(the_legend_fits)
{
    struct label_point points[CROWD];
    for (double width = 360; width <= 860; width += 500) {
        struct figure f;
        char *text = NULL;
        size_t size = 0;
        free(draw_crowd(&f, points, 0, 1));
        figure_begin(&f, &text, &size);
        f.width = width;
        double height = figure_number_legend(&f, points, CROWD, false);
        assert_int_equal(f.taken_count, 0);
        f.height += height, f.bottom += height;
        assert_true(figure_number_legend(&f, points, CROWD, true) == height);
        assert_true(f.taken_count > CROWD);
        for (int a = 0; a < f.taken_count; a++) {
            assert_true(f.taken[a].x0 >= 0 && f.taken[a].x1 <= width + 4);
            assert_true(f.taken[a].y0 >= f.height - height && f.taken[a].y1 <= f.height);
            for (int b = 0; b < a; b++) {
                struct box box = {f.taken[b].x0 + 3, f.taken[b].y0, f.taken[b].x1 - 3,
                                  f.taken[b].y1};
                assert_true(apart(&f.taken[a], &box));
            }
        }
        fclose(f.commands);
        free(text);
    }
}

TEST(positions_follow_the_axes)
{
    struct figure f = {
        .width = 200, .height = 100, .left = 50, .right = 50, .top = 10, .bottom = 10};
    f.x = (struct axis){1, 100, true};
    f.y = (struct axis){0, 10, false};
    assert_true(fabs(figure_px_x(&f, 1) - 50) < 1e-9);
    assert_true(fabs(figure_px_x(&f, 10) - 100) < 1e-9);
    assert_true(fabs(figure_px_y(&f, 0) - 90) < 1e-9);
    assert_true(fabs(figure_px_y(&f, 7.5) - 30) < 1e-9);
}

static const char sample_svg[] =
    "<?xml version=\"1.0\"?>\n<svg \n viewBox=\"0 0 760 460\"\n xmlns=\"x\"\n>\n"
    "<title>Gnuplot</title>\n<desc>Produced</desc>\n<g id=\"gnuplot_canvas\">\n"
    "<rect x=\"0\" y=\"0\" width=\"760\" height=\"460\" fill=\"#ffffff\"/>\n<defs>"
    "<circle id='gpDot' r='0.5'/></defs>\n<path stroke='black' d='M0,0'/>"
    "<use xlink:href='#gpDot' color='rgb(230, 159,   0)'/>"
    "<g stroke=\"x\" stroke-linecap=\"butt\">\n</g>"
    "<g fill=\"rgb(0,0,0)\"><text>a&lt;b</text></g></g>\n</svg>\n";

TEST(a_picture_becomes_part_of_the_page)
{
    char path[] = "/tmp/ridge_test_svg_XXXXXX", *got = NULL;
    size_t size = 0;
    struct svg_words words = {"p1", "A <title>", "what it shows", "<a href=\"#p1\"/>"};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, sample_svg, sizeof(sample_svg) - 1), sizeof(sample_svg) - 1);
    close(fd);
    FILE *stream = open_memstream(&got, &size);
    MUST(svg_inline, path, &words, stream);
    fclose(stream);
    assert_non_null(strstr(got, "viewBox=\"0 0 760 460\" role=\"group\""));
    assert_non_null(strstr(got, "<a href=\"#p1\"/></svg>"));
    assert_non_null(strstr(got, "<title id=\"p1-t\">A &lt;title&gt;</title>"));
    assert_non_null(strstr(got, "id='p1-gpDot'"));
    assert_non_null(strstr(got, "<use href='#p1-gpDot' color='rgb(230, 159,   0)'/>"));
    assert_non_null(strstr(got, "stroke='currentColor'"));
    assert_non_null(strstr(got, "<g fill=\"currentColor\"><text>a&lt;b</text>"));
    assert_null(strstr(got, "linecap")); /* an empty group */
    assert_null(strstr(got, "Gnuplot"));
    assert_null(strstr(got, "#ffffff"));
    assert_null(strstr(got, "xmlns"));
    free(got);
    assert_int_equal(truncate(path, 40), 0);
    stream = fopen("/dev/null", "w");
    FAILS(STATUS_FAILED, "not an SVG", svg_inline, path, &words, stream);
    fclose(stream);
    unlink(path);
}

TEST(every_plot_says_what_it_is)
{
    struct plot plot;
    int count = 0;
    for (const struct embedded *file = plot_next(NULL); file; file = plot_next(file)) {
        MUST(plot_read, file, &plot);
        assert_true(plot.view_count > 0 && plot.about[0] && strstr(plot.script, "plot DATA"));
        count++;
    }
    assert_true(count >= 6);
    struct embedded bad = {"plots/x.gp", "# title: x\n# view: nonsense\nplot 1\n", 0};
    FAILS(STATUS_FAILED, "plots/x.gp:2", plot_read, &bad, &plot);
    FAILS(STATUS_FAILED, "did you mean \"roofline\"", plot_find, "roofine", &plot);
}
