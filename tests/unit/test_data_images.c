/* SPDX-License-Identifier: Apache-2.0
 *
 * MNIST, CIFAR-10, and how pictures become inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"
#include "workloads/data/pictures.h"

enum { SIDE = 4, PIXELS = SIDE * SIDE, CIFAR_RECORD = 3073 };

static void near(double got, double wanted)
{
    assert_true(fabs(got - wanted) < 1e-5);
}

/* ---- MNIST ---- */

/* Image k is k everywhere, its label k % 3. */
struct idx {
    uint8_t images[16 + 9 * PIXELS], labels[8 + 9];
    struct data_text texts[2];
};

static void make_idx(struct idx *idx, uint8_t count)
{
    const uint8_t images[16] = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    const uint8_t labels[8] = {0, 0, 8, 1, 0, 0, 0, count};
    memcpy(idx->images, images, sizeof(images));
    memcpy(idx->labels, labels, sizeof(labels));
    for (int k = 0; k < count; k++) {
        memset(idx->images + 16 + k * PIXELS, k, PIXELS);
        idx->labels[8 + k] = (uint8_t)(k % 3);
    }
    idx->texts[0] =
        (struct data_text){"train-images-idx3-ubyte", idx->images, 16 + (size_t)count * PIXELS};
    idx->texts[1] = (struct data_text){"train-labels-idx1-ubyte", idx->labels, 8 + (size_t)count};
}

static void name_test_part(struct idx *idx)
{
    idx->texts[0].name = "t10k-images-idx3-ubyte";
    idx->texts[1].name = "t10k-labels-idx1-ubyte";
}

TEST(mnist_has_images_and_labels)
{
    struct idx train, test;
    make_idx(&train, 9);
    make_idx(&test, 5);
    name_test_part(&test);
    const struct data_text texts[] = {train.texts[0], train.texts[1], test.texts[0], test.texts[1]};
    struct data_case c;
    MUST(data_case_open, &c, "mnist", texts, 4, data_case_images(5, 6, 3));
    assert_int_equal(c.set.count[DATA_LEARNT], 9);
    assert_int_equal(c.set.count[DATA_HELD_OUT], 5);
    MUST(data_case_read, &c, true, 0);
    const float *image = batch_input(&c.batch, "image");
    const int64_t *label = batch_input(&c.batch, "label");
    for (int64_t n = 0; n < 5; n++) {
        assert_int_equal(label[n], n % 3);
        for (int64_t k = 0; k < 3 * 6 * 6; k++)
            near((double)image[n * 3 * 6 * 6 + k], ((double)n / 255 - 0.1307) / 0.3081);
    }
    data_case_close(&c);
}

static void mnist_refuses(const struct idx *idx, int64_t classes, const char *says)
{
    struct data_case c;
    struct error err;
    assert_int_equal(
        data_case_open(&c, "mnist", idx->texts, 2, data_case_images(2, SIDE, classes), &err),
        STATUS_FAILED);
    if (!strstr(err.message, says))
        fail_msg("%s", err.message);
    data_case_close(&c);
}

TEST(mnist_that_is_broken_is_refused)
{
    struct idx idx;
    make_idx(&idx, 9);
    mnist_refuses(&idx, 2, "train-labels-idx1-ubyte, offset 10: label 2");
    idx.texts[0].size--;
    mnist_refuses(&idx, 3, "offset 159: the file ends, but its head speaks of 9 records of 16");
    idx.texts[0].size = 12;
    mnist_refuses(&idx, 3, "12 bytes; the head of an idx file has 16");
    make_idx(&idx, 9);
    idx.images[3] = 1;
    mnist_refuses(&idx, 3, "offset 0: 0x00000801; an idx file of images begins with 0x00000803");
    make_idx(&idx, 9);
    idx.labels[7] = 8;
    mnist_refuses(&idx, 3, "8 labels for 9 images");
    make_idx(&idx, 9);
    idx.images[10] = 255;
    mnist_refuses(&idx, 3, "images of 65284 x 4 pixels");
    make_idx(&idx, 0);
    mnist_refuses(&idx, 3, "no samples");
}

/* ---- CIFAR-10 ---- */

TEST(cifar_has_a_plane_per_colour)
{
    struct data_case c;
    uint8_t *records = calloc(3, CIFAR_RECORD);
    assert_non_null(records);
    for (int k = 0; k < 3; k++) {
        records[k * CIFAR_RECORD] = (uint8_t)(k + 7);
        for (int colour = 0; colour < 3; colour++)
            memset(records + k * CIFAR_RECORD + 1 + colour * 1024, 50 * colour + k, 1024);
    }
    struct data_text texts[] = {{"data_batch_1.bin", records, 3 * CIFAR_RECORD},
                                {"data_batch_4.bin", records, 2 * CIFAR_RECORD},
                                {"test_batch.bin", records, 3 * CIFAR_RECORD}};
    MUST(data_case_open, &c, "cifar10", texts, 3, data_case_images(3, 16, 10));
    assert_int_equal(c.set.count[DATA_LEARNT], 5);
    MUST(data_case_read, &c, true, 0);
    const float *image = batch_input(&c.batch, "image");
    const int64_t *label = batch_input(&c.batch, "label");
    assert_int_equal(label[2], 9);
    near((double)image[2 * 3 * 256], (2.0 / 255 - 0.4914) / 0.2470);
    near((double)image[2 * 3 * 256 + 256 + 9], (52.0 / 255 - 0.4822) / 0.2435);
    near((double)image[3 * 3 * 256 - 1], (102.0 / 255 - 0.4465) / 0.2616);
    data_case_close(&c);

    texts[1].size--;
    FAILS(STATUS_FAILED, "data_batch_4.bin, offset 3073: the last record has 3072", data_case_open,
          &c, "cifar10", texts, 3, data_case_images(3, 16, 10));
    data_case_close(&c);
    records[CIFAR_RECORD] = 10;
    FAILS(STATUS_FAILED, "data_batch_1.bin, offset 3073: label 10", data_case_open, &c, "cifar10",
          texts, 1, data_case_images(3, 16, 10));
    data_case_close(&c);
    FAILS(STATUS_FAILED, "10 classes, but the network tells 9 apart", data_case_open, &c, "cifar10",
          texts, 1, data_case_images(3, 16, 9));
    data_case_close(&c);
    free(records);
}

/* ---- pictures ---- */

static const struct picture_scale plain = {.deviation = {1.0f / 255, 1.0f / 255, 1.0f / 255}};

/* Of 4 x 4 pixels, 10 y + x; the first line of the first channel. */
static const float *put(struct data_case *c, const struct picture_part *part)
{
    static const uint8_t pixels[PIXELS] = {0,  1,  2,  3,  10, 11, 12, 13,
                                           20, 21, 22, 23, 30, 31, 32, 33};
    const struct picture picture = {
        .pixels = pixels, .width = SIDE, .height = SIDE, .pixel = 1, .row = SIDE};
    picture_put(&c->batch, 0, &picture, part, &plain);
    return batch_input(&c->batch, "image");
}

static struct data_case case_of(int64_t side)
{
    struct idx idx, test;
    struct data_case c;
    make_idx(&idx, 9);
    make_idx(&test, 9);
    name_test_part(&test);
    const struct data_text texts[] = {idx.texts[0], idx.texts[1], test.texts[0], test.texts[1]};
    MUST(data_case_open, &c, "mnist", texts, 4, data_case_images(2, side, 3));
    return c; /* its files are gone: none is read */
}

TEST(a_picture_as_it_is_mirrored_and_shifted)
{
    struct data_case c = case_of(SIDE);
    const float *image = put(&c, &(struct picture_part){0, 0, SIDE, SIDE, false});
    for (int k = 0; k < 3 * PIXELS; k++)
        near((double)image[k], 10 * (k / SIDE % SIDE) + k % SIDE);
    image = put(&c, &(struct picture_part){0, 0, SIDE, SIDE, true});
    near((double)image[0], 3);
    near((double)image[PIXELS - 1], 30);
    image = put(&c, &(struct picture_part){1, -1, SIDE, SIDE, false});
    near((double)image[0], 0); /* above the picture */
    near((double)image[SIDE], 1);
    near((double)image[SIDE + 3], 0); /* beside it */
    data_case_close(&c);
}

TEST(a_picture_is_resized_between_pixels)
{
    struct data_case c = case_of(2 * SIDE);
    const float *image = put(&c, &(struct picture_part){0, 0, SIDE, SIDE, false});
    near((double)image[0], 0); /* the edge */
    near((double)image[1], 0.25);
    near((double)image[2], 0.75);
    near((double)image[2 * SIDE], 2.5);
    near((double)image[4 * PIXELS - 1], 33);
    data_case_close(&c);
}

TEST(samples_are_cut_inside_the_picture_and_the_same_again)
{
    struct data_case c = case_of(SIDE);
    bool differs = false;
    for (int64_t k = 0; k < 200; k++) {
        c.batch.first = k;
        struct picture_part a = picture_resized(&c.batch, 0, 500, 300);
        struct picture_part b = picture_resized(&c.batch, 0, 500, 300);
        assert_memory_equal(&a.x, &b.x, 4 * sizeof(double));
        assert_true(a.x >= 0 && a.y >= 0 && a.x + a.width <= 500 + 1e-9);
        assert_true(a.y + a.height <= 300 + 1e-9);
        assert_true(a.width * a.height >= 0.08 * 500 * 300 * (1 - 1e-9));
        differs |= k > 0 && a.mirrored;
    }
    assert_true(differs);
    c.batch.held_out = true;
    struct picture_part middle = picture_resized(&c.batch, 0, 500, 300);
    near(middle.width, 262.5);
    near(middle.x, (500 - 262.5) / 2);
    data_case_close(&c);
}
