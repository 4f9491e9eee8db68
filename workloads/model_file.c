/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/model_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/system/file.h"
#include "workloads/onnx/open_dims.h"

enum { SIZES_MAX = 64 };

static const char ending[] = ".onnx";

size_t model_file_path(const char *spec)
{
    size_t length = strlen(spec), size = sizeof(ending) - 1;
    for (size_t end = length; end > size; end--)
        if ((end == length || spec[end] == ':') &&
            strncasecmp(spec + end - size, ending, size) == 0)
            return end;
    return 0;
}

/* What stands in a word, cut up. */
struct model_word {
    char *path; /* malloc'd; NULL: no memory */
    const char *sizes[SIZES_MAX];
    int count; /* more than SIZES_MAX: too many */
};

static struct model_word cut_up(const char *spec)
{
    struct model_word word = {.path = strdup(spec)};
    size_t length = model_file_path(spec); /* 0: a file without the ending, and no sizes */
    char *save = NULL;
    if (!word.path || !length || !word.path[length])
        return word;
    word.path[length] = 0;
    for (char *size = strtok_r(word.path + length + 1, ",", &save); size;
         size = strtok_r(NULL, ",", &save)) {
        if (word.count < SIZES_MAX)
            word.sizes[word.count] = size;
        word.count++;
    }
    return word;
}

static enum status open_word(struct model_word *word, const struct onnx_import_options *options,
                             struct graph **out, struct error *err)
{
    struct onnx_import_options all = *options;
    if (!word->path)
        return FAIL_NO_MEMORY(err);
    if (word->count + options->dim_count > SIZES_MAX)
        return FAIL(err, STATUS_FAILED, "%s: more than %d sizes are given", word->path, SIZES_MAX);
    for (int k = 0; k < options->dim_count; k++)
        word->sizes[word->count++] = options->dims[k];
    all.dims = word->sizes;
    all.dim_count = word->count;
    return onnx_import(word->path, &all, out, err);
}

enum status model_file_open(const char *spec, const struct onnx_import_options *options,
                            struct graph **out, struct error *err)
{
    *out = NULL;
    struct model_word word = cut_up(spec);
    enum status status = open_word(&word, options, out, err);
    free(word.path);
    return status;
}

/* False: it cannot be read, or does not say them. */
static bool read_dims(const char *path, struct arena *arena, struct open_dims *dims)
{
    struct file file;
    *dims = (struct open_dims){0};
    if (file_map(path, &file, NULL) != STATUS_OK)
        return false;
    bool read = open_dims_read(file.data, file.size, arena, dims);
    file_unmap(&file);
    return read;
}

int64_t model_file_batch(const char *spec)
{
    struct arena arena = {.head = NULL};
    struct open_dims dims;
    struct model_word word = cut_up(spec);
    int64_t batch = 0;
    if (word.path && word.count <= SIZES_MAX && read_dims(word.path, &arena, &dims))
        batch = open_dims_batch(&dims, word.sizes, word.count);
    arena_release(&arena);
    free(word.path);
    return batch;
}

const struct param *model_file_params(const char *path, struct arena *arena, const char **batch)
{
    struct open_dims dims;
    const char *name = "";
    int batches = 0, count = 0;
    struct param *params = arena_array(arena, PARAM_MAX + 1, sizeof(*params));
    if (!params)
        return NULL;
    if (!read_dims(path, arena, &dims))
        dims.count = 0;
    for (size_t k = 0; k < dims.count; k++) {
        batches += dims.list[k].batch;
        name = dims.list[k].batch ? dims.list[k].name : name;
    }
    for (size_t k = 0; k < dims.count && count < PARAM_MAX; k++)
        if (!dims.list[k].batch || batches > 1)
            params[count++] = (struct param){
                .name = dims.list[k].name, .value = "", .help = "a size that the file leaves open"};
    params[count] = (struct param){.name = NULL};
    if (batch)
        *batch = batches == 1 ? name : "";
    return params;
}
