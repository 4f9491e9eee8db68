/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"
#include "workloads/data/jpeg.h"

#define SEEDS "tests/fuzz/seeds/jpeg/"

/* Pictures of one colour each, in folders that are removed at the end. */
struct folders {
    char root[64], paths[32][128];
    int count;
};

static void remember(struct folders *f, const char *path)
{
    snprintf(f->paths[f->count++], sizeof(f->paths[0]), "%s", path);
}

static void make_folder(struct folders *f, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", f->root, name);
    assert_int_equal(mkdir(path, 0700), 0);
    remember(f, path);
}

static void put(struct folders *f, const char *name, const char *seed, size_t bytes)
{
    char path[128];
    struct file file;
    snprintf(path, sizeof(path), SEEDS "%s", seed);
    MUST(file_map, path, &file);
    snprintf(path, sizeof(path), "%s/%s", f->root, name);
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    bytes = bytes ? bytes : file.size;
    assert_int_equal(fwrite(file.data, 1, bytes, to), bytes);
    fclose(to);
    file_unmap(&file);
    remember(f, path);
}

static void begin(struct folders *f)
{
    *f = (struct folders){.root = "/tmp/ridge_jpeg_XXXXXX"};
    assert_non_null(mkdtemp(f->root));
    static const char *const names[] = {"train", "train/blue", "train/red", "val", "val/red"};
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        make_folder(f, names[k]);
    put(f, "train/blue/1.jpg", "blue", 0);
    put(f, "train/red/2.JPEG", "red", 0);
    put(f, "val/red/3.jpg", "red", 0);
}

static void end(struct folders *f)
{
    while (f->count)
        remove(f->paths[--f->count]);
    rmdir(f->root);
}

static bool is_absent(void)
{
    char reason[400];
    return !jpeg_open(reason, sizeof(reason));
}

/* Mean of a channel, between 0 and 255. */
static double mean_of(const struct data_case *c, int64_t row, int channel, int64_t pixels)
{
    static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
    const float *image = batch_input(&c->batch, "image");
    double sum = 0;
    for (int64_t k = 0; k < pixels; k++)
        sum += (double)image[(row * 3 + channel) * pixels + k];
    return 255 * (sum / (double)pixels * deviation[channel] + mean[channel]);
}

TEST(folders_are_classes_and_colours_stay)
{
    struct folders f;
    struct data_case c;
    if (is_absent())
        skip();
    begin(&f);
    MUST(data_case_open, &c, f.root, NULL, 0, data_case_images(2, 24, 2));
    assert_string_equal(c.set.format->name, "jpeg");
    assert_int_equal(c.set.count[DATA_LEARNT], 2);
    assert_int_equal(c.set.count[DATA_HELD_OUT], 1);
    for (int64_t first = 0; first < 20; first += 2) {
        MUST(data_case_read, &c, false, first);
        const int64_t *label = batch_input(&c.batch, "label");
        assert_int_equal(label[0] + label[1], 1);
        for (int64_t row = 0; row < 2; row++) {
            bool red = label[row] == 1;
            assert_true(fabs(mean_of(&c, row, 0, 24 * 24) - (red ? 204 : 24)) < 12);
            assert_true(fabs(mean_of(&c, row, 1, 24 * 24) - (red ? 24 : 34)) < 12);
            assert_true(fabs(mean_of(&c, row, 2, 24 * 24) - (red ? 34 : 204)) < 12);
        }
    }
    data_case_close(&c);
    end(&f);
}

TEST(a_picture_that_is_cut_off_is_named)
{
    struct folders f;
    struct data_case c;
    struct error err;
    if (is_absent())
        skip();
    begin(&f);
    put(&f, "train/red/4.jpg", "red", 640);
    put(&f, "train/red/5.jpg", "red", 640);
    MUST(data_case_open, &c, f.root, NULL, 0, data_case_images(4, 24, 2));
    assert_int_equal(data_case_read(&c, false, 0, &err), STATUS_FAILED);
    assert_non_null(strstr(err.message, "/train/red/"));
    assert_non_null(strstr(err.message, ".jpg: offset 640 of 640: "));
    assert_non_null(strstr(err.message, "remature end")); /* each libjpeg in its own words */
    data_case_close(&c);
    end(&f);
}

TEST(what_is_no_picture_is_named)
{
    struct jpeg_pixels pixels;
    char reason[400], why[JPEG_WHY];
    const struct jpeg_backend *jpeg = jpeg_open(reason, sizeof(reason));
    int width, height;
    if (!jpeg)
        skip();
    assert_false(jpeg->size("GIF89a..", 8, &width, &height, why));
    assert_non_null(strstr(why, "Not a JPEG file"));
    assert_false(jpeg->decode("", 0, 1, &pixels, why));
    assert_true(*why);
}

TEST(classes_are_checked)
{
    struct folders f;
    struct data_case c;
    if (is_absent())
        skip();
    begin(&f);
    FAILS(STATUS_FAILED, "2 classes, but the network tells 1 apart", data_case_open, &c, f.root,
          NULL, 0, data_case_images(2, 24, 1));
    data_case_close(&c);
    make_folder(&f, "val/green");
    FAILS(STATUS_FAILED, "val/green: a class that the pictures to learn from", data_case_open, &c,
          f.root, NULL, 0, data_case_images(2, 24, 2));
    data_case_close(&c);
    end(&f);
}
