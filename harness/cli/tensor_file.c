/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/cli/tensor_file.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/file.h"
#include "base/text/npy.h"
#include "workloads/onnx/onnx.h"

struct pair {
    enum dtype dtype;
    char kind;
    size_t item_bytes;
};

static const struct pair pairs[] = {
    {DTYPE_F32, 'f', 4},  {DTYPE_F64, 'f', 8},    {DTYPE_F16, 'f', 2}, {DTYPE_BF16, 'V', 2},
    {DTYPE_I8, 'i', 1},   {DTYPE_U8, 'u', 1},     {DTYPE_I16, 'i', 2}, {DTYPE_U16, 'u', 2},
    {DTYPE_I32, 'i', 4},  {DTYPE_U32, 'u', 4},    {DTYPE_I64, 'i', 8}, {DTYPE_U64, 'u', 8},
    {DTYPE_BOOL, 'b', 1}, {DTYPE_F8E4M3, 'V', 1},
};

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

static enum status load_pb(const char *path, struct desc *desc, void **data, struct error *err)
{
    struct file file;
    TRY(file_map(path, &file, err));
    enum status status = onnx_tensor_parse(file.data, file.size, desc, data, NULL, err);
    file_unmap(&file);
    return status == STATUS_OK ? status : error_context(err, "%s", path);
}

enum status tensor_load(const char *path, struct desc *desc, void **data, struct error *err)
{
    struct npy array;
    if (ends_in(path, ".pb"))
        return load_pb(path, desc, data, err);
    TRY(npy_load(path, &array, err));
    enum dtype dtype = DTYPE_NONE;
    for (int k = 0; k < ARRAY_COUNT(pairs); k++)
        if (pairs[k].kind == array.kind && pairs[k].item_bytes == array.item_bytes)
            dtype = pairs[k].dtype;
    struct shape shape = shape_from(array.rank, array.dim);
    *desc = desc_dense(dtype, &shape, LAYOUT_PLAIN);
    *data = array.data;
    return STATUS_OK;
}

enum status tensor_save(const char *path, enum dtype dtype, const struct shape *shape,
                        const void *data, struct error *err)
{
    struct npy array = {.rank = shape->rank, .data = (void *)(uintptr_t)data};
    for (int k = 0; k < ARRAY_COUNT(pairs); k++) {
        if (pairs[k].dtype != dtype)
            continue;
        array.kind = pairs[k].kind;
        array.item_bytes = pairs[k].item_bytes;
    }
    for (int k = 0; k < shape->rank; k++)
        array.dim[k] = shape->dim[k];
    return npy_save(path, &array, err);
}

/* Without what folders and shells take for something else; NULL: out of memory. */
static char *cleaned_name(struct arena *arena, const char *name)
{
    char *text = arena_strdup(arena, *name ? name : "_");
    for (char *c = text; c && *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-+", *c))
            *c = '_';
    if (text && text[0] == '.')
        text[0] = '_';
    return text;
}

static bool is_taken(const char *const *files, int count, const char *name)
{
    for (int k = 0; k < count; k++)
        if (files[k] && strcmp(files[k], name) == 0)
            return true;
    return false;
}

/* The cleaned name, or the first of NAME_2, NAME_3 ... that is free; NULL: out of memory. */
static const char *free_name(const char *const *files, int count, const char *name,
                             struct arena *arena)
{
    char *cleaned = cleaned_name(arena, name), *text = cleaned;
    for (int k = 2; text && is_taken(files, count, text); k++)
        text = arena_printf(arena, "%s_%d", cleaned, k);
    return text;
}

enum status tensor_file_names(const char *const *names, int count, struct arena *arena,
                              const char *const **files, struct error *err)
{
    const char **list = arena_array(arena, (size_t)count + 1, sizeof(*list));
    *files = list;
    for (int k = 0; list && k < count; k++) { /* first those that stay as they are */
        const char *cleaned = cleaned_name(arena, names[k]);
        if (cleaned && strcmp(cleaned, names[k]) == 0 && !is_taken(list, count, cleaned))
            list[k] = cleaned;
    }
    for (int k = 0; list && k < count; k++) {
        list[k] = list[k] ? list[k] : free_name(list, count, names[k], arena);
        if (!list[k])
            return FAIL_NO_MEMORY(err);
    }
    return list ? STATUS_OK : FAIL_NO_MEMORY(err);
}

enum status tensor_save_in(const char *folder, const char *file, enum dtype dtype,
                           const struct shape *shape, const void *data, struct error *err)
{
    char path[1024];
    int length = snprintf(path, sizeof(path), "%s/%s.npy", folder, file);
    if (length < 0 || (size_t)length >= sizeof(path))
        return FAIL(err, STATUS_FAILED, "%s: the path is too long", folder);
    TRY(folders_make(path, err));
    return tensor_save(path, dtype, shape, data, err);
}
