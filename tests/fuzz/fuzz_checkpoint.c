/* SPDX-License-Identifier: Apache-2.0
 * The readers of safetensors and of checkpoints on any bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "engine/train/checkpoint_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the header says, all contents lie in the file. */
static void look_at_all(const struct safetensors *contents, const uint8_t *data, size_t size)
{
    struct error err;
    for (int k = 0; k < contents->count; k++) {
        const struct safetensor *t = &contents->tensors[k];
        struct tensor_summary summary;
        if ((const uint8_t *)t->data < data || (const uint8_t *)t->data + t->bytes > data + size)
            abort();
        tensor_summarise(t, &summary, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct checkpoint checkpoint;
    struct safetensors contents;
    if (safetensors_parse(data, size, "fuzz", &contents, &err) == STATUS_OK)
        look_at_all(&contents, data, size);
    safetensors_release(&contents);
    checkpoint_parse(data, size, "fuzz", &checkpoint, &err);
    checkpoint_close(&checkpoint);
    return 0;
}
