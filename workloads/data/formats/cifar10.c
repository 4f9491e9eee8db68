/* SPDX-License-Identifier: Apache-2.0
 *
 * CIFAR-10, binary version: records of a byte that is the label and 3 x 32 x 32 bytes, one colour
 * after the other. Images are shifted by up to four pixels and mirrored, as is usual since He et
 * al. (CVPR 2016, section 4.2). */
#include <stdio.h>
#include <string.h>

#include "workloads/data/pictures.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE, CLASSES = 10, SHIFT = 4, FILES = 5 };

static const struct picture_scale scale = {.mean = {0.4914f, 0.4822f, 0.4465f},
                                           .deviation = {0.2470f, 0.2435f, 0.2616f}};

struct batches {
    const uint8_t *records[FILES];
    int64_t count[FILES];
    int files;
};

struct cifar {
    struct batches of[DATA_PARTS];
    struct data_split split;
    bool splits;
};

static enum status add_file(struct data_set *set, const char *name, struct batches *to,
                            struct error *err)
{
    struct data_text text;
    TRY(data_map(&set->source, name, &text, err));
    const uint8_t *records = text.data;
    int64_t count = (int64_t)text.size / RECORD;
    if (text.size % RECORD)
        return FAIL(err, STATUS_FAILED,
                    "%s, offset %lld: the last record has %d of %d bytes; get the file again",
                    text.name, (long long)(count * RECORD), (int)(text.size % RECORD), RECORD);
    for (int64_t k = 0; k < count; k++)
        if (records[k * RECORD] >= CLASSES)
            return FAIL(err, STATUS_FAILED, "%s, offset %lld: label %d; there are 0 to %d",
                        text.name, (long long)(k * RECORD), records[k * RECORD], CLASSES - 1);
    to->records[to->files] = records;
    to->count[to->files++] = count;
    return STATUS_OK;
}

static enum status cifar_open(struct data_set *set, const struct graph *graph, struct error *err)
{
    struct cifar *c = arena_alloc(&set->source.arena, sizeof(*c));
    if (!c)
        return FAIL_NO_MEMORY(err);
    set->state = c;
    TRY(pictures_check(set, graph, CLASSES, err));
    for (int k = 1; k <= FILES; k++) {
        char name[32];
        snprintf(name, sizeof(name), "data_batch_%d.bin", k);
        if (k == 1 || data_has(&set->source, name))
            TRY(add_file(set, name, &c->of[DATA_LEARNT], err));
    }
    c->splits = !data_has(&set->source, "test_batch.bin");
    if (!c->splits)
        TRY(add_file(set, "test_batch.bin", &c->of[DATA_HELD_OUT], err));
    for (int part = 0; part < DATA_PARTS; part++)
        for (int k = 0; k < c->of[part].files; k++)
            set->count[part] += c->of[part].count[k];
    if (!c->splits)
        return STATUS_OK;
    TRY(data_split(&set->source.arena, set->count[DATA_LEARNT], &c->split, err));
    memcpy(set->count, c->split.count, sizeof(set->count));
    return STATUS_OK;
}

static const uint8_t *record_of(const struct batches *b, int64_t index)
{
    int file = 0;
    while (index >= b->count[file])
        index -= b->count[file++];
    return b->records[file] + index * RECORD;
}

static enum status cifar_read(const struct data_set *set, struct data_rows *rows, struct error *err)
{
    const struct cifar *c = set->state;
    const struct batch *batch = rows->batch;
    int64_t *label = batch_input(batch, "label");
    (void)err;
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t row = rows->first + k, index = rows->record[k];
        if (c->splits)
            index = c->split.index[batch->held_out][index];
        const uint8_t *record = record_of(&c->of[c->splits ? 0 : batch->held_out], index);
        struct picture picture = {.pixels = record + 1,
                                  .width = SIDE,
                                  .height = SIDE,
                                  .pixel = 1,
                                  .row = SIDE,
                                  .plane = PLANE};
        struct picture_part part = picture_shifted(batch, row, &picture, SHIFT, true);
        picture_put(batch, row, &picture, &part, &scale);
        label[row] = *record;
        rows->bytes += RECORD;
    }
    return STATUS_OK;
}

REGISTER(data_format, cifar10) = {
    .name = "cifar10",
    .summary = "CIFAR-10, binary version: data_batch_1.bin ... data_batch_5.bin, test_batch.bin",
    .marks = {"data_batch_1.bin"},
    .inside = {"cifar-10-batches-bin"},
    .open = cifar_open,
    .read = cifar_read,
};
