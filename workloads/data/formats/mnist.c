/* SPDX-License-Identifier: Apache-2.0
 *
 * MNIST and its variants (Fashion-MNIST, KMNIST): idx files, which say in big-endian numbers what
 * they are: 0x08 for bytes and the number of dimensions, then the dimensions. Grey images fill
 * every channel of the network. They are shifted by up to two pixels and not mirrored: digits have
 * a side. */
#include <string.h>

#include "workloads/data/pictures.h"

enum { SHIFT = 2, IMAGES_MAGIC = 0x803, LABELS_MAGIC = 0x801, IMAGES_HEAD = 16, LABELS_HEAD = 8 };

static const struct picture_scale scale = {.mean = {0.1307f, 0.1307f, 0.1307f},
                                           .deviation = {0.3081f, 0.3081f, 0.3081f}};

/* Images and labels of one part. */
struct idx {
    const uint8_t *pixels, *labels;
    int64_t count, height, width;
};

struct mnist {
    struct idx idx[DATA_PARTS];
    struct data_split split; /* where there is no test part: of the first */
    bool splits;
};

static int64_t number_at(const struct data_text *text, size_t offset)
{
    const uint8_t *b = (const uint8_t *)text->data + offset;
    return (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

static enum status check_head(const struct data_text *text, int64_t magic, size_t head,
                              struct error *err)
{
    if (text->size < head)
        return FAIL(err, STATUS_FAILED, "%s: %zu bytes; the head of an idx file has %zu",
                    text->name, text->size, head);
    if (number_at(text, 0) != magic)
        return FAIL(err, STATUS_FAILED,
                    "%s, offset 0: 0x%08llx; an idx file of %s begins with 0x%08llx", text->name,
                    (unsigned long long)number_at(text, 0),
                    magic == IMAGES_MAGIC ? "images" : "labels", (unsigned long long)magic);
    return STATUS_OK;
}

static enum status check_length(const struct data_text *text, size_t head, int64_t count,
                                int64_t each, struct error *err)
{
    if ((int64_t)(text->size - head) / each < count)
        return FAIL(err, STATUS_FAILED,
                    "%s, offset %zu: the file ends, but its head speaks of %lld records of %lld "
                    "bytes; get it again",
                    text->name, text->size, (long long)count, (long long)each);
    return STATUS_OK;
}

static enum status read_idx(const struct data_text *images, const struct data_text *labels,
                            struct idx *idx, struct error *err)
{
    TRY(check_head(images, IMAGES_MAGIC, IMAGES_HEAD, err));
    TRY(check_head(labels, LABELS_MAGIC, LABELS_HEAD, err));
    *idx = (struct idx){.count = number_at(images, 4),
                        .height = number_at(images, 8),
                        .width = number_at(images, 12),
                        .pixels = (const uint8_t *)images->data + IMAGES_HEAD,
                        .labels = (const uint8_t *)labels->data + LABELS_HEAD};
    if (idx->height < 1 || idx->height > PICTURE_MAX || idx->width < 1 || idx->width > PICTURE_MAX)
        return FAIL(err, STATUS_FAILED, "%s, offset 8: images of %lld x %lld pixels", images->name,
                    (long long)idx->height, (long long)idx->width);
    if (number_at(labels, 4) != idx->count)
        return FAIL(err, STATUS_FAILED, "%s, offset 4: %lld labels for %lld images of %s",
                    labels->name, (long long)number_at(labels, 4), (long long)idx->count,
                    images->name);
    TRY(check_length(images, IMAGES_HEAD, idx->count, idx->height * idx->width, err));
    return check_length(labels, LABELS_HEAD, idx->count, 1, err);
}

static enum status check_labels(const struct data_text *labels, const struct idx *idx,
                                int64_t classes, struct error *err)
{
    for (int64_t k = 0; k < idx->count; k++)
        if (idx->labels[k] >= classes)
            return FAIL(err, STATUS_FAILED,
                        "%s, offset %lld: label %d, but the network tells %lld classes apart",
                        labels->name, (long long)(LABELS_HEAD + k), idx->labels[k],
                        (long long)classes);
    return STATUS_OK;
}

/* The two spellings that are about: train-images-idx3-ubyte and train-images.idx3-ubyte. */
static enum status map_either(struct data_source *source, const char *dashed, const char *dotted,
                              struct data_text *text, struct error *err)
{
    return data_map(source, data_has(source, dotted) ? dotted : dashed, text, err);
}

static bool has_part(const struct data_source *source, int part)
{
    return part == DATA_LEARNT || data_has(source, "t10k-images-idx3-ubyte") ||
           data_has(source, "t10k-images.idx3-ubyte");
}

static enum status open_part(struct data_set *set, int part, int64_t classes, struct idx *idx,
                             struct error *err)
{
    static const char *const names[DATA_PARTS][4] = {
        {"train-images-idx3-ubyte", "train-images.idx3-ubyte", "train-labels-idx1-ubyte",
         "train-labels.idx1-ubyte"},
        {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte",
         "t10k-labels.idx1-ubyte"}};
    struct data_text images, labels;
    TRY(map_either(&set->source, names[part][0], names[part][1], &images, err));
    TRY(map_either(&set->source, names[part][2], names[part][3], &labels, err));
    TRY(read_idx(&images, &labels, idx, err));
    return check_labels(&labels, idx, classes, err);
}

static enum status mnist_open(struct data_set *set, const struct graph *graph, struct error *err)
{
    const struct value *label;
    struct mnist *m = arena_alloc(&set->source.arena, sizeof(*m));
    if (!m)
        return FAIL_NO_MEMORY(err);
    set->state = m;
    TRY(pictures_check(set, graph, 0, err));
    TRY(data_input(set, graph, "label", DTYPE_I64, 1, &label, err));
    m->splits = !has_part(&set->source, DATA_HELD_OUT);
    for (int part = 0; part < (m->splits ? 1 : DATA_PARTS); part++) {
        TRY(open_part(set, part, data_ids(label), &m->idx[part], err));
        set->count[part] = m->idx[part].count;
    }
    if (!m->splits)
        return STATUS_OK;
    TRY(data_split(&set->source.arena, m->idx[0].count, &m->split, err));
    memcpy(set->count, m->split.count, sizeof(set->count));
    return STATUS_OK;
}

static enum status mnist_read(const struct data_set *set, struct data_rows *rows, struct error *err)
{
    const struct mnist *m = set->state;
    const struct batch *batch = rows->batch;
    const struct idx *idx = &m->idx[m->splits ? 0 : batch->held_out];
    int64_t *label = batch_input(batch, "label");
    (void)err;
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t row = rows->first + k, record = rows->record[k];
        if (m->splits)
            record = m->split.index[batch->held_out][record];
        struct picture picture = {.pixels = idx->pixels + record * idx->height * idx->width,
                                  .width = (int)idx->width,
                                  .height = (int)idx->height,
                                  .pixel = 1,
                                  .row = idx->width};
        struct picture_part part = picture_shifted(batch, row, &picture, SHIFT, false);
        picture_put(batch, row, &picture, &part, &scale);
        label[row] = idx->labels[record];
        rows->bytes += idx->height * idx->width + 1;
    }
    return STATUS_OK;
}

REGISTER(data_format, mnist) = {
    .name = "mnist",
    .summary = "idx files: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-... of both",
    .marks = {"train-images-idx3-ubyte", "train-images.idx3-ubyte", "train-images-idx3-ubyte.gz"},
    .inside = {"MNIST/raw", "raw", "FashionMNIST/raw"},
    .open = mnist_open,
    .read = mnist_read,
};
