/* SPDX-License-Identifier: Apache-2.0
 * JPEG on any bytes, whole and shrunk. Without libjpeg there is nothing to be tested. */
#include <stdint.h>
#include <stdlib.h>

#include "workloads/data/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const struct jpeg_backend *backend, const uint8_t *data, size_t size, int shrink)
{
    struct jpeg_pixels pixels;
    char why[JPEG_WHY] = "";
    if (!backend->decode(data, size, shrink, &pixels, why)) {
        if (!*why)
            abort();
        return;
    }
    size_t bytes = 3 * (size_t)pixels.width * (size_t)pixels.height;
    unsigned sum = 0;
    for (size_t k = 0; k < bytes; k++)
        sum += pixels.rgb[k];
    if (sum > 255 * bytes)
        abort();
    free(pixels.rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char reason[400], why[JPEG_WHY] = "";
    int width, height;
    const struct jpeg_backend *backend = jpeg_open(reason, sizeof(reason));
    if (!backend || !backend->size(data, size, &width, &height, why))
        return 0;
    if ((int64_t)width * height > 1 << 20) /* large pictures take long and tell nothing more */
        return 0;
    decode(backend, data, size, 1);
    decode(backend, data, size, 8);
    return 0;
}
