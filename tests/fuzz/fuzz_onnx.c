/* SPDX-License-Identifier: Apache-2.0
 * The importer takes or refuses any bytes: no crash, no leak, no undefined arithmetic. More seeds
 * than are kept here: the model.onnx files of package libonnx-testdata. */
#include <stdint.h>
#include <stdlib.h>

#include "workloads/onnx/onnx.h"
#include "workloads/onnx/open_dims.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph *g = NULL;
    struct error err = {0};
    struct onnx_interface interface;
    struct desc desc;
    void *tensor;
    struct arena arena = {.head = NULL};
    struct open_dims dims;
    if (open_dims_read(data, size, &arena, &dims) && open_dims_batch(&dims, NULL, 0) < 1)
        abort();
    arena_release(&arena);
    if (onnx_interface(data, size, &interface, &err) == STATUS_OK)
        free(interface.ports);
    if (onnx_tensor_parse(data, size, &desc, &tensor, NULL, &err) == STATUS_OK)
        free(tensor);
    err = (struct error){0};
    enum status status = onnx_import_memory(data, size, NULL, "fuzz", NULL, &g, &err);
    if (status == STATUS_OK ? graph_check(g, &err) != STATUS_OK : !err.message[0])
        abort(); /* a graph is whole, and a failure says why */
    graph_free(g);
    return 0;
}
