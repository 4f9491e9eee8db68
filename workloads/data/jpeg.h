/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JPEG files through libjpeg-turbo. The library is behind a plug-in, plugins/data/jpeg.so
 * (workloads/data/jpeg/), so that ridge needs none to start; the plug-in sees nothing of ridge but
 * this header. */
#ifndef WORKLOADS_DATA_JPEG_H
#define WORKLOADS_DATA_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JPEG_ABI = 1, JPEG_WHY = 240 };

struct jpeg_pixels {
    uint8_t *rgb; /* three bytes a pixel, lines without gaps; free() it */
    int width, height;
};

struct jpeg_backend {
    int abi; /* JPEG_ABI */
    const char *version;
    /* Both false with a text in why, JPEG_WHY bytes, that begins with the offset where reading
     * stopped. */
    bool (*size)(const void *data, size_t bytes, int *width, int *height, char *why);
    /* shrink: 1, 2, 4 or 8, which is how many times smaller it is decoded. */
    bool (*decode)(const void *data, size_t bytes, int shrink, struct jpeg_pixels *pixels,
                   char *why);
};

/* The one export. */
typedef const struct jpeg_backend *ridge_jpeg_entry(void);
extern __attribute__((visibility("default"))) ridge_jpeg_entry ridge_jpeg;

/* The plug-in; NULL and a reason where it is not there. */
const struct jpeg_backend *jpeg_open(char *reason, size_t size);

#endif
