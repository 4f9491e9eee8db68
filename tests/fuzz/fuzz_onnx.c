/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer must take or refuse any bytes: no crash, no leak, no undefined arithmetic. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "engine/onnx/onnx.h"
#include "tests/lib/onnx_build.h"

const char fuzz_extension[] = ".onnx";

uint8_t *fuzz_seed(int index, size_t *size)
{
    if (index >= hostile_count())
        return NULL;
    static struct builder b; /* large, and empty again after each seed */
    hostile_build(index, &b);
    uint8_t *bytes = malloc(b.size + 1);
    if (bytes && b.size)
        memcpy(bytes, b.bytes, b.size);
    *size = b.size;
    build_release(&b);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph *g = NULL;
    struct error err;
    struct onnx_interface interface;
    struct onnx_import_options options = {.batch = 0};
    if (onnx_interface(data, size, &interface, &err) == STATUS_OK)
        free(interface.ports);
    onnx_import_memory(data, size, NULL, "fuzz", &options, &g, &err);
    if (g && graph_check(g, &err) != STATUS_OK)
        abort();
    graph_free(g);
    return 0;
}
