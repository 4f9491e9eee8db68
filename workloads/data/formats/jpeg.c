/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of JPEG files: a folder per class, in a folder "train" and another one, "val" or "test",
 * or side by side. Classes are numbered in the order of their names. Pictures are cut and resized
 * as networks for ImageNet are trained, and decoded no larger than that needs. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "workloads/data/jpeg.h"
#include "workloads/data/pictures.h"

static const struct picture_scale scale = {.mean = {0.485f, 0.456f, 0.406f},
                                           .deviation = {0.229f, 0.224f, 0.225f}};

struct file_of {
    const char *path;
    int64_t label;
};

struct listing {
    struct file_of *files;
    size_t room;
    int64_t count;
};

struct jpegs {
    const struct jpeg_backend *backend;
    char **classes;
    int64_t class_count;
    struct listing part[DATA_PARTS];
    struct data_split split;
    bool splits;
};

/* ---- folders ---- */

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_jpeg(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".JPG", ".JPEG"};
    size_t length = strlen(name);
    for (int k = 0; k < ARRAY_COUNT(endings); k++)
        if (length > strlen(endings[k]) &&
            strcmp(name + length - strlen(endings[k]), endings[k]) == 0)
            return *name != '.';
    return false;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

typedef enum status visit_entry(void *context, const char *folder, const char *name,
                                struct error *err);

/* Every entry in the order of the names. */
static enum status each_entry(const char *folder, visit_entry *visit, void *context,
                              struct error *err)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    enum status status = STATUS_OK;
    if (count < 0)
        return FAIL(err, STATUS_FAILED, "%s: this folder cannot be read", folder);
    for (int k = 0; k < count; k++) {
        if (status == STATUS_OK && entries[k]->d_name[0] != '.')
            status = visit(context, folder, entries[k]->d_name, err);
        free(entries[k]);
    }
    free(entries);
    return status;
}

static enum status find_jpeg(void *context, const char *folder, const char *name, struct error *err)
{
    (void)folder;
    (void)err;
    *(bool *)context |= is_jpeg(name);
    return STATUS_OK;
}

/* Whether a folder in this one has a picture. */
static enum status find_class(void *context, const char *folder, const char *name,
                              struct error *err)
{
    char path[1024];
    bool *found = context;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return *found || !is_folder(path) ? STATUS_OK : each_entry(path, find_jpeg, context, err);
}

static bool has_classes(const char *folder)
{
    bool found = false;
    struct error ignored;
    return each_entry(folder, find_class, &found, &ignored) == STATUS_OK && found;
}

static bool recognises(const char *folder)
{
    char train[600];
    snprintf(train, sizeof(train), "%s/train", folder);
    return has_classes(is_folder(train) ? train : folder);
}

/* ---- files and their classes ---- */

struct listed {
    struct data_set *set;
    struct listing *to;
    int64_t label;
    bool names_classes; /* of the folder to learn from: others have no more */
};

static enum status add_file(void *context, const char *folder, const char *name, struct error *err)
{
    struct listed *l = context;
    struct arena *arena = &l->set->source.arena;
    if (!is_jpeg(name))
        return STATUS_OK;
    l->to->files = arena_grow(arena, l->to->files, &l->to->room, (size_t)l->to->count + 1,
                              sizeof(*l->to->files));
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    if (!l->to->files || !path)
        return FAIL_NO_MEMORY(err);
    l->to->files[l->to->count++] = (struct file_of){path, l->label};
    return STATUS_OK;
}

static int64_t class_named(const struct jpegs *j, const char *name)
{
    for (int64_t k = 0; k < j->class_count; k++)
        if (strcmp(j->classes[k], name) == 0)
            return k;
    return -1;
}

static enum status add_class(void *context, const char *folder, const char *name, struct error *err)
{
    struct listed *l = context;
    struct jpegs *j = l->set->state;
    struct arena *arena = &l->set->source.arena;
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!is_folder(path))
        return STATUS_OK;
    if (l->names_classes) {
        size_t room = (size_t)j->class_count;
        j->classes = arena_grow(arena, j->classes, &room, room + 1, sizeof(*j->classes));
        if (!j->classes || !(j->classes[j->class_count] = arena_strdup(arena, name)))
            return FAIL_NO_MEMORY(err);
        j->class_count++;
    }
    l->label = class_named(j, name);
    if (l->label < 0)
        return FAIL(err, STATUS_FAILED, "%s: a class that the pictures to learn from do not have",
                    path);
    return each_entry(path, add_file, l, err);
}

static enum status list_part(struct data_set *set, int part, const char *name, struct error *err)
{
    struct jpegs *j = set->state;
    struct listed l = {.set = set, .to = &j->part[part], .names_classes = part == DATA_LEARNT};
    char path[600];
    snprintf(path, sizeof(path), "%s%s%s", set->source.folder, *name ? "/" : "", name);
    TRY(each_entry(path, add_class, &l, err));
    set->count[part] = l.to->count;
    return STATUS_OK;
}

static enum status list_all(struct data_set *set, struct error *err)
{
    struct jpegs *j = set->state;
    bool has_train = data_has(&set->source, "train");
    const char *held_out = data_has(&set->source, "val")    ? "val"
                           : data_has(&set->source, "test") ? "test"
                                                            : NULL;
    TRY(list_part(set, DATA_LEARNT, has_train ? "train" : "", err));
    j->splits = !has_train || !held_out;
    if (!j->splits)
        return list_part(set, DATA_HELD_OUT, held_out, err);
    TRY(data_split(&set->source.arena, j->part[0].count, &j->split, err));
    memcpy(set->count, j->split.count, sizeof(set->count));
    return STATUS_OK;
}

static enum status jpeg_set_open(struct data_set *set, const struct graph *graph, struct error *err)
{
    char reason[400];
    struct jpegs *j = arena_alloc(&set->source.arena, sizeof(*j));
    if (!j)
        return FAIL_NO_MEMORY(err);
    set->state = j;
    TRY(pictures_check(set, graph, 0, err));
    if (!set->source.folder)
        return FAIL(err, STATUS_FAILED, "pictures are read from folders");
    if (!(j->backend = jpeg_open(reason, sizeof(reason))))
        return UNSUPPORTED(err, "JPEG files cannot be read: %s", reason);
    TRY(list_all(set, err));
    return pictures_check(set, graph, j->class_count, err);
}

/* ---- samples ---- */

/* As small as it can be decoded with a pixel for each one that is wanted. */
static int shrink_of(const struct graph *g, const struct picture_part *part)
{
    const struct shape *shape = &g->values[graph_find_value(g, "image")].shape;
    int shrink = 8;
    while (shrink > 1 && (part->width < (double)(shrink * shape->dim[3]) ||
                          part->height < (double)(shrink * shape->dim[2])))
        shrink /= 2;
    return shrink;
}

static enum status put_jpeg(const struct jpeg_backend *backend, const struct batch *batch,
                            int64_t row, const struct file *file, const char *path,
                            struct error *err)
{
    struct jpeg_pixels pixels;
    char why[JPEG_WHY] = "";
    int width, height;
    if (!backend->size(file->data, file->size, &width, &height, why))
        return FAIL(err, STATUS_FAILED, "%s: %s", path, why);
    struct picture_part part = picture_resized(batch, row, width, height);
    if (!backend->decode(file->data, file->size, shrink_of(batch->graph, &part), &pixels, why))
        return FAIL(err, STATUS_FAILED, "%s: %s", path, why);
    double across = (double)pixels.width / width, down = (double)pixels.height / height;
    part.x *= across;
    part.width *= across;
    part.y *= down;
    part.height *= down;
    struct picture picture = {.pixels = pixels.rgb,
                              .width = pixels.width,
                              .height = pixels.height,
                              .pixel = 3,
                              .row = 3 * (int64_t)pixels.width,
                              .plane = 1};
    picture_put(batch, row, &picture, &part, &scale);
    free(pixels.rgb);
    return STATUS_OK;
}

static enum status jpeg_set_read(const struct data_set *set, struct data_rows *rows,
                                 struct error *err)
{
    const struct jpegs *j = set->state;
    const struct batch *batch = rows->batch;
    int64_t *label = batch_input(batch, "label");
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t row = rows->first + k, index = rows->record[k];
        if (j->splits)
            index = j->split.index[batch->held_out][index];
        const struct file_of *of = &j->part[j->splits ? 0 : batch->held_out].files[index];
        struct file file;
        TRY(file_map(of->path, &file, err));
        enum status status = put_jpeg(j->backend, batch, row, &file, of->path, err);
        rows->bytes += (int64_t)file.size;
        file_unmap(&file);
        TRY(status);
        label[row] = of->label;
    }
    return STATUS_OK;
}

REGISTER(data_format, jpeg) = {
    .name = "jpeg",
    .summary = "pictures, a folder per class: train/CLASS/*.jpg, val/CLASS/*.jpg, or CLASS/*.jpg",
    .recognises = recognises,
    .open = jpeg_set_open,
    .read = jpeg_set_read,
};
