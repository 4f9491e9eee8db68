/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text/npy.h"
#include "harness/cli/tensor_file.h"
#include "tests/lib/unit.h"

/* A version 1 file with this header text and these contents. */
static size_t make(uint8_t *to, const char *header, const void *data, size_t bytes)
{
    size_t length = strlen(header);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (uint8_t)(length & 255);
    to[9] = (uint8_t)(length >> 8);
    memcpy(to + 10, header, length);
    if (bytes)
        memcpy(to + 10 + length, data, bytes);
    return 10 + length + bytes;
}

static enum status parse(const char *header, const void *data, size_t bytes, struct npy *array)
{
    uint8_t file[1024];
    struct error err;
    size_t size = make(file, header, data, bytes);
    return npy_parse(file, size, "test", array, &err);
}

TEST(reads_what_numpy_writes)
{
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    struct npy array;
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", data,
                           sizeof(data), &array),
                     STATUS_OK);
    assert_int_equal(array.kind, 'f');
    assert_int_equal(array.item_bytes, 4);
    assert_int_equal(array.rank, 2);
    assert_int_equal(array.dim[1], 3);
    assert_memory_equal(array.data, data, sizeof(data));
    npy_release(&array);
    assert_int_equal(
        parse("{'shape': (), 'descr': '<i8', 'fortran_order': False}\n", data, 8, &array),
        STATUS_OK);
    assert_int_equal(array.rank, 0);
    npy_release(&array);
    assert_int_equal(
        parse("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 5), }\n", data, 0, &array),
        STATUS_OK);
    assert_int_equal(npy_bytes(&array), 0);
    npy_release(&array);
}

TEST(turns_fortran_order_round)
{
    static const int16_t columns[6] = {1, 4, 2, 5, 3, 6}, rows[6] = {1, 2, 3, 4, 5, 6};
    struct npy array;
    assert_int_equal(parse("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", columns,
                           sizeof(columns), &array),
                     STATUS_OK);
    assert_memory_equal(array.data, rows, sizeof(rows));
    npy_release(&array);
}

TEST(refuses_bad_files)
{
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, }",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
    };
    static const float one = 1;
    struct npy array;
    struct error err;
    for (int k = 0; k < ARRAY_COUNT(headers); k++) {
        assert_int_not_equal(parse(headers[k], &one, sizeof(one), &array), STATUS_OK);
        assert_null(array.data);
    }
    assert_int_not_equal(npy_parse("\x93NUMPY\x01\x00\xff\xff", 10, "short", &array, &err),
                         STATUS_OK);
    assert_int_not_equal(npy_parse("\x93NUMPY\x09\x00\x00\x00", 10, "version", &array, &err),
                         STATUS_OK);
    assert_int_not_equal(npy_parse("", 0, "empty", &array, &err), STATUS_OK);
}

TEST(every_type_survives)
{
    char path[] = "/tmp/ridge-npy-XXXXXX";
    struct shape shape = shape_of(2, 3, 1);
    uint8_t bytes[48];
    for (size_t k = 0; k < sizeof(bytes); k++)
        bytes[k] = (uint8_t)(k * 37);
    close(mkstemp(path));
    for (int type = 1; type < DTYPE_COUNT; type++) {
        struct desc desc;
        void *data;
        MUST(tensor_save, path, (enum dtype)type, &shape, bytes);
        MUST(tensor_load, path, &desc, &data);
        assert_int_equal(desc.dtype, type);
        assert_true(shape_equal(&desc.shape, &shape));
        assert_memory_equal(data, bytes, 6 * dtype_size((enum dtype)type));
        free(data);
    }
    unlink(path);
}

TEST(contents_begin_aligned)
{
    char path[] = "/tmp/ridge-npy-XXXXXX";
    struct file file;
    struct shape shape = shape_of(1, 2, 3, 4, 5, 6, 1, 1);
    static const float data[720] = {0};
    close(mkstemp(path));
    MUST(tensor_save, path, DTYPE_F32, &shape, data);
    MUST(file_map, path, &file);
    assert_int_equal((file.size - sizeof(data)) % 64, 0);
    assert_int_equal(((const char *)file.data)[file.size - sizeof(data) - 1], '\n');
    file_unmap(&file);
    unlink(path);
}

TEST(files_say_what_is_wrong)
{
    struct error err;
    struct file file;
    FAILS(STATUS_FAILED, "/nonexistent/file", file_map, "/nonexistent/file", &file);
    FAILS(STATUS_FAILED, "folder", file_map, "/tmp", &file);
    assert_int_equal(file_map("/dev/null", &file, &err), STATUS_FAILED);
}
