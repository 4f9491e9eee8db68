/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/precision.h"

#include <string.h>

static const char *const names[PRECISION_COUNT] = {
    [PRECISION_F32] = "f32", [PRECISION_TF32] = "tf32", [PRECISION_BF16] = "bf16",
    [PRECISION_F16] = "f16", [PRECISION_I8] = "i8",     [PRECISION_F8] = "f8",
};

const char *precision_name(enum precision precision)
{
    return names[precision];
}

enum status precision_from_name(const char *name, enum precision *out, struct error *err)
{
    *out = PRECISION_F32;
    if (name)
        for (int k = 0; k < PRECISION_COUNT; k++) {
            if (strcmp(name, names[k]) != 0)
                continue;
            *out = (enum precision)k;
            return STATUS_OK;
        }
    return name ? FAIL(err, STATUS_FAILED, "precision \"%s\" is not f32, tf32, bf16, f16, i8 or f8",
                       name)
                : STATUS_OK;
}

enum dtype precision_floats(enum precision precision)
{
    return precision == PRECISION_BF16  ? DTYPE_BF16
           : precision == PRECISION_F16 ? DTYPE_F16
                                        : DTYPE_F32;
}
