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

enum status tensor_save_in(const char *folder, const char *name, enum dtype dtype,
                           const struct shape *shape, const void *data, struct error *err)
{
    char path[1024];
    int start = snprintf(path, sizeof(path), "%s/", folder);
    int end = start < 0 ? -1 : snprintf(path, sizeof(path), "%s/%s.npy", folder, name);
    if (end < 0 || (size_t)end >= sizeof(path))
        return FAIL(err, STATUS_FAILED, "%s: the path is too long", folder);
    for (char *c = path + start; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-+", *c))
            *c = '_';
    if (path[start] == '.')
        path[start] = '_';
    TRY(folders_make(path, err));
    return tensor_save(path, dtype, shape, data, err);
}
