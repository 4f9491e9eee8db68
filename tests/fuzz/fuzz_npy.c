/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/npy.h"
#include "base/registry.h"

const char fuzz_extension[] = ".npy";

static const char *const headers[] = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
    "{'descr': '<i8', 'fortran_order': True, 'shape': (3, 2, 2), }\n",
    "{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n",
    "{'descr': '<V2', 'fortran_order': False, 'shape': (7,), }\n",
    "{'descr': '|u1', 'fortran_order': True, 'shape': (0, 5), }\n",
};

uint8_t *fuzz_seed(int index, size_t *size)
{
    enum { CONTENTS = 128 };
    if (index >= ARRAY_COUNT(headers))
        return NULL;
    size_t length = strlen(headers[index]);
    uint8_t *file = calloc(1, 12 + length + CONTENTS);
    if (!file)
        return NULL;
    int version = index % 2 + 1; /* 2 has a length of four bytes */
    size_t start = version == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[8] = (uint8_t)length;
    memcpy(file + start, headers[index], length);
    *size = start + length + CONTENTS;
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy array;
    struct error err;
    if (npy_parse(data, size, "fuzz", &array, &err) == STATUS_OK && npy_bytes(&array) > size)
        abort();
    npy_release(&array);
    return 0;
}
